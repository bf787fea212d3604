package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
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

// newScheme knows each kind as its own internal version: there is nothing to
// convert, and one version.
func newScheme() (*runtime.Scheme, serializer.CodecFactory) {
	scheme := runtime.NewScheme()
	add := func(version schema.GroupVersion, kinds ...runtime.Object) {
		scheme.AddKnownTypes(schema.GroupVersion{Group: version.Group, Version: runtime.APIVersionInternal}, kinds...)
		scheme.AddKnownTypes(version, kinds...)
		metav1.AddToGroupVersion(scheme, version)
	}
	add(coordination.SchemeGroupVersion, &coordination.Lease{}, &coordination.LeaseList{})
	add(core.SchemeGroupVersion, &core.ConfigMap{}, &core.ConfigMapList{})
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
		c.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
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

// definitions describe what is served no further than that it is an object:
// nobody applies one here, and validation is the resource's.
func definitions(common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	object := common.OpenAPIDefinition{Schema: spec.Schema{
		SchemaProps:      spec.SchemaProps{Type: []string{"object"}},
		VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-preserve-unknown-fields": true}},
	}}
	return map[string]common.OpenAPIDefinition{
		coordination.Lease{}.OpenAPIModelName():     object,
		coordination.LeaseList{}.OpenAPIModelName(): object,
		core.ConfigMap{}.OpenAPIModelName():         object,
		core.ConfigMapList{}.OpenAPIModelName():     object,
	}
}

// install serves all there is out of the etcd at endpoint.
func install(s *server.GenericAPIServer, scheme *runtime.Scheme, codecs serializer.CodecFactory, endpoint string) error {
	coordinated, err := group(coordination.SchemeGroupVersion, leases(scheme), scheme, codecs, endpoint)
	if err != nil {
		return err
	}
	legacy, err := group(core.SchemeGroupVersion, configMaps(scheme), scheme, codecs, endpoint)
	if err != nil {
		return err
	}
	return errors.Join(s.InstallAPIGroup(coordinated), s.InstallLegacyAPIGroup(server.DefaultLegacyAPIPrefix, legacy))
}

// group is an API group of one resource, with the watch cache that a cluster has
// before its etcd.
func group(version schema.GroupVersion, r resource, scheme *runtime.Scheme, codecs serializer.CodecFactory, endpoint string) (*server.APIGroupInfo, error) {
	storage := storagebackend.NewDefaultConfig("/registry", codecs.LegacyCodec(version))
	storage.Transport.ServerList = []string{endpoint}
	store := &registry.Store{
		NewFunc: r.newObject, NewListFunc: r.newList,
		DefaultQualifiedResource: r.plural, SingularQualifiedResource: r.singular,
		CreateStrategy: r, UpdateStrategy: r, DeleteStrategy: r,
		TableConvertor: rest.NewDefaultTableConvertor(r.plural),
	}
	err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: generic.RESTOptions{
		StorageConfig:  storage.ForResource(r.plural),
		Decorator:      registry.StorageWithCacher(),
		ResourcePrefix: r.plural.Resource,
	}})
	if err != nil {
		return nil, fmt.Errorf("%v: %w", r.plural, err)
	}
	info := server.NewDefaultAPIGroupInfo(version.Group, scheme, metav1.ParameterCodec, codecs)
	info.VersionedResourcesStorageMap = map[string]map[string]rest.Storage{version.Version: {r.plural.Resource: store}}
	return &info, nil
}
