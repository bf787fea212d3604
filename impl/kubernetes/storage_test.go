package kubernetes_test

import (
	"context"
	"testing"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fencepost/impl/fence"
	"fencepost/impl/kubernetes"
	"fencepost/props"
	"fencepost/props/kit"
	"fencepost/props/livetest"
)

func TestStorage(t *testing.T) {
	s := startServer(t)
	made := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	if _, err := s.configMaps(t, "default").Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	props.TestLiveStorage(t, func(props.LiveEnv) fence.KV {
		return kubernetes.NewConfigMap(s.configMaps(t, "default"), "data")
	}, props.LiveStorageOptions{Restart: s.Restart})
}

// unconditional updates whatever is there.
type unconditional struct{ kubernetes.ConfigMaps }

func (u unconditional) Update(ctx context.Context, m *core.ConfigMap, o metav1.UpdateOptions) (*core.ConfigMap, error) {
	m = m.DeepCopy()
	m.ResourceVersion = ""
	return u.ConfigMaps.Update(ctx, m, o)
}

// forgetful keeps no token.
type forgetful struct{ kubernetes.ConfigMaps }

func (f forgetful) Update(ctx context.Context, m *core.ConfigMap, o metav1.UpdateOptions) (*core.ConfigMap, error) {
	m = m.DeepCopy()
	delete(m.Annotations, kubernetes.TokenAnnotation)
	return f.ConfigMaps.Update(ctx, m, o)
}

func TestWrongStoragesAreCaught(t *testing.T) {
	s := startServer(t)
	for _, wrong := range []struct {
		name, object, check string
		open                func(kubernetes.ConfigMaps) kubernetes.ConfigMaps
	}{
		{"an update without the resource version", "unconditional", "race/a-fence-in-the-middle", func(c kubernetes.ConfigMaps) kubernetes.ConfigMaps { return unconditional{c} }},
		{"the token is not kept", "forgetful", "rules/stale-is-refused", func(c kubernetes.ConfigMaps) kubernetes.ConfigMaps { return forgetful{c} }},
	} {
		t.Run(wrong.name, func(t *testing.T) {
			client := s.configMaps(t, "default")
			if _, err := client.Create(t.Context(), &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: wrong.object}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			checks := livetest.StorageChecks(func(props.LiveEnv) fence.KV {
				return kubernetes.NewConfigMap(wrong.open(client), wrong.object)
			}, livetest.StorageOptions{})
			f, err := kit.Convict(checks, wrong.check)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("caught: %v", f)
		})
	}
}

// A leader of the past does not write again what an operator has deleted.
func TestWriteDoesNotCreate(t *testing.T) {
	s := startServer(t)
	client := s.configMaps(t, "default")
	c := kubernetes.NewConfigMap(client, "data")
	if err := c.Fence(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), 7, "x", "1"); err != nil {
		t.Fatal(err)
	}
	if err := client.Delete(t.Context(), "data", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), 7, "x", "2"); err == nil {
		t.Error("written after the object was deleted")
	}
	if v, ok, err := c.Read(t.Context(), "x"); ok || err != nil {
		t.Errorf("read %q, %v, %v; want nothing there", v, ok, err)
	}
}
