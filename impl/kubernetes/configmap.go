package kubernetes

import (
	"context"
	"fmt"
	"unicode/utf8"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

// ConfigMaps is what a [ConfigMap] needs of client-go's
// kubernetes/typed/core/v1.ConfigMapInterface: the verbs get, create and update.
type ConfigMaps interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*core.ConfigMap, error)
	Create(ctx context.Context, m *core.ConfigMap, opts metav1.CreateOptions) (*core.ConfigMap, error)
	Update(ctx context.Context, m *core.ConfigMap, opts metav1.UpdateOptions) (*core.ConfigMap, error)
}

// ConfigMap is a [fence.KV] in one object of that kind: its data, under [Admit].
// It is for a little state, at most 1 MiB in all, that is not written often. Keys
// are those of a ConfigMap (letters, digits, "-", "_" and "."), and values UTF-8.
//
// What remembers the highest token is the object. Fence creates it where it is
// not there, and Write does not: where an operator has deleted it, a leader of
// the past writes nothing.
type ConfigMap struct {
	client ConfigMaps
	name   string
}

var _ fence.KV = (*ConfigMap)(nil)

// NewConfigMap is the storage in the ConfigMap of that name, in the namespace
// that client is for.
func NewConfigMap(client ConfigMaps, name string) *ConfigMap { return &ConfigMap{client, name} }

// Fence implements [fence.KV]: once it has returned nil no write with a lower
// token lands in the object. The refusal is a *[fence.StaleTokenError]; an
// *[ObjectError] says that nothing was done.
func (c *ConfigMap) Fence(ctx context.Context, token lease.Token) error {
	for {
		err := c.write(ctx, token, func(*core.ConfigMap) {})
		if !apierrors.IsNotFound(err) {
			return err
		}
		guard, ok := fence.Guard{}.Admit(token)
		if !ok {
			return &fence.StaleTokenError{Token: token}
		}
		m := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.name}}
		mark(m, guard)
		if _, err = c.client.Create(ctx, m, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			return c.failed("fence", err)
		}
	}
}

// Write lands value under key unless a higher token was seen. Its refusals are
// those of Fence; where the object is not there nothing is done.
func (c *ConfigMap) Write(ctx context.Context, token lease.Token, key, value string) error {
	if !utf8.ValidString(value) {
		return &ObjectError{Name: c.name, Reason: fmt.Sprintf("the value of %q is not UTF-8", key)}
	}
	return c.write(ctx, token, func(m *core.ConfigMap) {
		if m.Data == nil {
			m.Data = map[string]string{}
		}
		m.Data[key] = value
	})
}

// Read gives the value under key. Where the object is not there, nothing is.
func (c *ConfigMap) Read(ctx context.Context, key string) (value string, ok bool, err error) {
	m, err := c.client.Get(ctx, c.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", false, nil
	case err != nil:
		return "", false, c.failed("read", err)
	}
	value, ok = m.Data[key]
	return value, ok, nil
}

// write updates the object, on the condition that token may and that nobody else
// does meanwhile.
func (c *ConfigMap) write(ctx context.Context, token lease.Token, change func(*core.ConfigMap)) error {
	for {
		m, err := c.client.Get(ctx, c.name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("ConfigMap %q: nothing done: %w", c.name, err)
		}
		if err := Admit(m, token); err != nil {
			return err
		}
		change(m)
		if _, err = c.client.Update(ctx, m, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			return c.failed("write", err)
		}
	}
}

func (c *ConfigMap) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("ConfigMap %q: %s: %s: %w", c.name, what, outcome(err), err)
}
