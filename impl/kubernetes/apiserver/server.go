package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/component-base/compatibility"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// serve serves until ctx ends.
func serve(ctx context.Context, dir string, port int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	etcd, endpoint, err := startEtcd(ctx, "etcd")
	if err != nil {
		return err
	}
	defer etcd.Close()
	cfg, err := config(port)
	if err != nil {
		return err
	}
	scheme, codecs := newScheme()
	s, err := cfg(scheme, codecs).Complete(nil).New("apiserver", server.NewEmptyDelegate())
	if err != nil {
		return err
	}
	if err := install(s, scheme, codecs, endpoint); err != nil {
		return err
	}
	return s.PrepareRun().RunWithContext(ctx)
}

// newScheme knows Lease as its own internal version: there is nothing to
// convert, and one version.
func newScheme() (*runtime.Scheme, serializer.CodecFactory) {
	scheme := runtime.NewScheme()
	internal := schema.GroupVersion{Group: coordination.GroupName, Version: runtime.APIVersionInternal}
	scheme.AddKnownTypes(internal, &coordination.Lease{}, &coordination.LeaseList{})
	if err := coordination.AddToScheme(scheme); err != nil {
		panic(err)
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme, serializer.NewCodecFactory(scheme)
}

// config gives the server's configuration, once the scheme is known.
func config(port int) (func(*runtime.Scheme, serializer.CodecFactory) *server.Config, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	serving, err := certificate("apiserver")
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return func(scheme *runtime.Scheme, codecs serializer.CodecFactory) *server.Config {
		c := server.NewConfig(codecs)
		c.SecureServing = &server.SecureServingInfo{Listener: listener, Cert: serving}
		c.ExternalAddress = listener.Addr().String()
		c.LoopbackClientConfig = &restclient.Config{}
		c.EffectiveVersion = compatibility.NewEffectiveVersionFromString("1.37", "", "")
		c.EnableMetrics, c.EnableProfiling, c.SkipOpenAPIInstallation = false, false, true
		c.OpenAPIV3Config = server.DefaultOpenAPIV3Config(definitions, openapi.NewDefinitionNamer(scheme))
		return c
	}, nil
}

// certificate makes the pair path.crt and path.key, or takes those that a server
// before has left, so that clients go on over a restart.
func certificate(path string) (dynamiccertificates.CertKeyContentProvider, error) {
	if _, err := os.Stat(path + ".key"); err != nil {
		crt, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(path+".crt", crt, 0o644); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path+".key", key, 0o600); err != nil {
			return nil, err
		}
	}
	return dynamiccertificates.NewDynamicServingContentFromFiles("serving", path+".crt", path+".key")
}

// definitions describe Lease no further than that it is an object: nobody
// applies one here, and validation is the strategy's.
func definitions(common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	object := common.OpenAPIDefinition{Schema: spec.Schema{
		SchemaProps:      spec.SchemaProps{Type: []string{"object"}},
		VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-preserve-unknown-fields": true}},
	}}
	return map[string]common.OpenAPIDefinition{
		coordination.Lease{}.OpenAPIModelName():     object,
		coordination.LeaseList{}.OpenAPIModelName(): object,
	}
}

// install serves leases out of the etcd at endpoint, with the watch cache that a
// cluster has before it.
func install(s *server.GenericAPIServer, scheme *runtime.Scheme, codecs serializer.CodecFactory, endpoint string) error {
	storage := storagebackend.NewDefaultConfig("/registry", codecs.LegacyCodec(coordination.SchemeGroupVersion))
	storage.Transport.ServerList = []string{endpoint}
	leases, err := newRegistry(scheme, generic.RESTOptions{
		StorageConfig:  storage.ForResource(coordination.Resource("leases")),
		Decorator:      registry.StorageWithCacher(),
		ResourcePrefix: "leases",
	})
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	group := server.NewDefaultAPIGroupInfo(coordination.GroupName, scheme, metav1.ParameterCodec, codecs)
	group.VersionedResourcesStorageMap = map[string]map[string]rest.Storage{
		coordination.SchemeGroupVersion.Version: {"leases": leases},
	}
	return s.InstallAPIGroup(&group)
}
