// Package explore walks every interleaving
package explore

import (
	"context"

	"fencepost/model"
)

func Run(ctx context.Context, o Options) (model.Exploration, error) {
	if err := o.Validate(); err != nil {
		return model.Exploration{}, err
	}
	s, err := newSystem(&o)
	if err != nil {
		return model.Exploration{}, err
	}
	return model.Explore(ctx, s, model.ExploreOptions{Workers: o.Workers, MaxStates: o.MaxStates, MaxMemory: o.MaxMemory, MaxDepth: o.MaxDepth, Sometimes: someCount, Progress: o.Progress}), nil
}
