package kubernetes_test

import (
	"testing"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fencepost/impl/fence"
	"fencepost/impl/kubernetes"
	"fencepost/props"
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
