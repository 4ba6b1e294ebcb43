// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Kind names a kind of the closed table, spelled as in manifests.
type Kind string

// The kinds that are stored. SelfSubjectAccessReview is answered, not stored.
const (
	Service       Kind = "Service"
	Pod           Kind = "Pod"
	Node          Kind = "Node"
	StatefulSet   Kind = "StatefulSet"
	ConfigMap     Kind = "ConfigMap"
	Secret        Kind = "Secret"
	EventKind     Kind = "Event"
	EndpointSlice Kind = "EndpointSlice"
	Namespace     Kind = "Namespace"
)

// kind is one row of the closed table: how a kind is called, and the rules that are its own. The rule
// functions get objects of that kind only; live is nil on creation.
type kind struct {
	Kind       Kind
	gvk        schema.GroupVersionKind
	plural     string
	short      []string
	namespaced bool
	hasStatus  bool
	// persisted objects survive a restart of the process.
	persisted bool
	// echoes: DELETE answers with the object instead of a Status.
	echoes bool
	// keepsStatus: a status in the body of a creation is stored.
	keepsStatus bool

	empty    func() Object
	list     func(items []Object, meta metav1.ListMeta) runtime.Object
	nameRule validation.ValidateNameFunc
	defaults func(obj Object)
	// prepare keeps what was allocated and wipes what the object may no longer have.
	prepare  func(next, live Object)
	validate func(next, live Object) field.ErrorList
	// setStatus copies the status of from into to; nil without hasStatus.
	setStatus      func(to, from Object)
	validateStatus func(next, live Object) field.ErrorList
	// fields are the values that a field selector may ask for, beyond metadata.
	fields func(obj Object) map[string]string
	// spec is what metadata.generation counts changes of; nil when it does not count.
	spec    func(obj Object) any
	columns []column

	main, status *managedfields.FieldManager
}

func (k *kind) resource() schema.GroupResource {
	return schema.GroupResource{Group: k.gvk.Group, Resource: k.plural}
}

// withDefaults fills the functions that most kinds do not need.
func (k *kind) withDefaults() *kind {
	if k.nameRule == nil {
		k.nameRule = validation.NameIsDNSSubdomain
	}
	if k.defaults == nil {
		k.defaults = func(Object) {}
	}
	if k.prepare == nil {
		k.prepare = func(Object, Object) {}
	}
	none := func(Object, Object) field.ErrorList { return nil }
	if k.validate == nil {
		k.validate = none
	}
	if k.validateStatus == nil {
		k.validateStatus = none
	}
	if k.fields == nil {
		k.fields = func(Object) map[string]string { return nil }
	}
	return k
}

// on, pair and check turn rules over one type into rules over Object; a nil live stays nil.
func on[T Object](f func(T)) func(Object) { return func(o Object) { f(o.(T)) } }

func pair[T Object](f func(next, live T)) func(next, live Object) {
	return func(next, live Object) {
		old, _ := live.(T)
		f(next.(T), old)
	}
}

func check[T Object](f func(next, live T) field.ErrorList) func(next, live Object) field.ErrorList {
	return func(next, live Object) field.ErrorList {
		old, _ := live.(T)
		return f(next.(T), old)
	}
}

func value[T Object, V any](f func(T) V) func(Object) V { return func(o Object) V { return f(o.(T)) } }

// kindTable is the closed table. What is not in it is answered 404.
func kindTable() []*kind {
	table := append(coreKinds(), workloadKinds()...)
	for _, k := range table {
		k.withDefaults()
	}
	return table
}

func coreKinds() []*kind {
	return []*kind{{
		Kind: ConfigMap, gvk: corev1.SchemeGroupVersion.WithKind("ConfigMap"), plural: "configmaps", short: []string{"cm"},
		namespaced: true, persisted: true,
		empty: func() Object { return &corev1.ConfigMap{} }, list: listOf(func(l *corev1.ConfigMapList, o *corev1.ConfigMap) { l.Items = append(l.Items, *o) }),
		validate: check(validateConfigMap), columns: configMapColumns(),
	}, {
		Kind: EventKind, gvk: corev1.SchemeGroupVersion.WithKind("Event"), plural: "events", short: []string{"ev"},
		namespaced: true, persisted: true,
		empty: func() Object { return &corev1.Event{} }, list: listOf(func(l *corev1.EventList, o *corev1.Event) { l.Items = append(l.Items, *o) }),
		validate: check(validateEvent), fields: value(eventFields), columns: eventColumns(),
	}, {
		Kind: Namespace, gvk: corev1.SchemeGroupVersion.WithKind("Namespace"), plural: "namespaces", short: []string{"ns"},
		hasStatus: true, persisted: true, echoes: true,
		empty: func() Object { return &corev1.Namespace{} }, list: listOf(func(l *corev1.NamespaceList, o *corev1.Namespace) { l.Items = append(l.Items, *o) }),
		nameRule: validation.NameIsDNSLabel,
		defaults: on(defaultNamespace), prepare: pair(prepareNamespace),
		setStatus: pair(func(to, from *corev1.Namespace) { to.Status = from.Status }),
		fields: value(func(o *corev1.Namespace) map[string]string {
			return map[string]string{"status.phase": string(o.Status.Phase), "name": o.Name}
		}), columns: namespaceColumns(),
	}, {
		Kind: Node, gvk: corev1.SchemeGroupVersion.WithKind("Node"), plural: "nodes", short: []string{"no"},
		hasStatus: true, persisted: true, keepsStatus: true,
		empty: func() Object { return &corev1.Node{} }, list: listOf(func(l *corev1.NodeList, o *corev1.Node) { l.Items = append(l.Items, *o) }),
		setStatus: pair(func(to, from *corev1.Node) { to.Status = from.Status }),
		fields:    value(nodeFields), columns: nodeColumns(),
	}, {
		Kind: Secret, gvk: corev1.SchemeGroupVersion.WithKind("Secret"), plural: "secrets",
		namespaced: true, persisted: true,
		empty: func() Object { return &corev1.Secret{} }, list: listOf(func(l *corev1.SecretList, o *corev1.Secret) { l.Items = append(l.Items, *o) }),
		defaults: on(defaultSecret), validate: check(validateSecret),
		fields:  value(func(o *corev1.Secret) map[string]string { return map[string]string{"type": string(o.Type)} }),
		columns: secretColumns(),
	}, {
		Kind: Service, gvk: corev1.SchemeGroupVersion.WithKind("Service"), plural: "services", short: []string{"svc"},
		namespaced: true, hasStatus: true, persisted: true, echoes: true,
		empty: func() Object { return &corev1.Service{} }, list: listOf(func(l *corev1.ServiceList, o *corev1.Service) { l.Items = append(l.Items, *o) }),
		nameRule: validation.NameIsDNS1035Label,
		defaults: on(defaultService), prepare: pair(prepareService), validate: check(validateService),
		setStatus:      pair(func(to, from *corev1.Service) { to.Status = from.Status }),
		validateStatus: check(validateServiceStatus),
		fields: value(func(o *corev1.Service) map[string]string {
			return map[string]string{"spec.type": string(o.Spec.Type), "spec.clusterIP": o.Spec.ClusterIP}
		}), columns: serviceColumns(),
	}}
}

func workloadKinds() []*kind {
	return []*kind{{
		Kind: Pod, gvk: corev1.SchemeGroupVersion.WithKind("Pod"), plural: "pods", short: []string{"po"},
		namespaced: true, hasStatus: true, echoes: true,
		empty: func() Object { return &corev1.Pod{} }, list: listOf(func(l *corev1.PodList, o *corev1.Pod) { l.Items = append(l.Items, *o) }),
		defaults: on(defaultPod), prepare: pair(preparePod), validate: check(validatePod),
		setStatus: pair(func(to, from *corev1.Pod) { to.Status = from.Status }),
		fields:    value(podFields), spec: func(o Object) any { return o.(*corev1.Pod).Spec }, columns: podColumns(),
	}, {
		Kind: StatefulSet, gvk: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), plural: "statefulsets", short: []string{"sts"},
		namespaced: true, hasStatus: true, persisted: true,
		empty: func() Object { return &appsv1.StatefulSet{} }, list: listOf(func(l *appsv1.StatefulSetList, o *appsv1.StatefulSet) { l.Items = append(l.Items, *o) }),
		defaults: on(defaultStatefulSet), validate: check(validateStatefulSet),
		setStatus: pair(func(to, from *appsv1.StatefulSet) { to.Status = from.Status }),
		spec:      func(o Object) any { return o.(*appsv1.StatefulSet).Spec }, columns: statefulSetColumns(),
	}, {
		Kind: EndpointSlice, gvk: discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), plural: "endpointslices",
		namespaced: true,
		empty:      func() Object { return &discoveryv1.EndpointSlice{} }, list: listOf(func(l *discoveryv1.EndpointSliceList, o *discoveryv1.EndpointSlice) { l.Items = append(l.Items, *o) }),
		defaults: on(defaultEndpointSlice), validate: check(validateEndpointSlice),
		spec: func(o Object) any {
			s := o.(*discoveryv1.EndpointSlice)
			return []any{s.Endpoints, s.Ports, s.AddressType}
		}, columns: endpointSliceColumns(),
	}}
}

// listOf makes the list of a kind: items carry no apiVersion and kind of their own, as on a real server.
func listOf[L any, O Object](add func(*L, O)) func([]Object, metav1.ListMeta) runtime.Object {
	return func(items []Object, meta metav1.ListMeta) runtime.Object {
		list := new(L)
		for _, item := range items {
			bare := item.DeepCopyObject().(O)
			bare.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
			add(list, bare)
		}
		out := any(list).(runtime.Object)
		l := any(list).(metav1.ListInterface)
		l.SetResourceVersion(meta.ResourceVersion)
		return out
	}
}
