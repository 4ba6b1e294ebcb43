// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package k8sservice

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Difference is one value of ours that the live Service does not have.
type Difference struct {
	Field string // "spec.type", "spec.ports[mysql-rw].nodePort", "metadata.annotations[a/b]"
	Want  string // "" when it must go
	Got   string // "" when it is missing
}

// String reads "spec.type is ClusterIP, not NodePort".
func (d Difference) String() string {
	switch {
	case d.Got == "":
		return fmt.Sprintf("%s is missing, not %s", d.Field, d.Want)
	case d.Want == "":
		return fmt.Sprintf("%s is %s, and must go", d.Field, d.Got)
	}
	return fmt.Sprintf("%s is %s, not %s", d.Field, d.Got, d.Want)
}

// Drift compares the live Service with the one desired and returns what
// differs, sorted by field; nothing when there is nothing to apply. A nil
// live Service differs in "metadata.name" alone. The owner's uid is not
// compared: it is read only when something is applied.
func Drift(live *corev1.Service, d Desired) []Difference {
	if live == nil {
		return []Difference{{Field: "metadata.name", Want: d.Name}}
	}
	b := d.body()
	own := ownedBy(live, isOurs)
	c := &comparison{}
	c.metadata(live, b)
	c.ports(live, b.Spec.Ports)
	c.compare("spec.type", string(b.Spec.Type), string(live.Spec.Type))
	c.compare("spec.selector["+LabelApp+"]", b.Spec.Selector[LabelApp], live.Spec.Selector[LabelApp])
	if d.Mode != False && (b.Spec.TrafficPolicy != "" || own.has("f:spec", "f:externalTrafficPolicy")) {
		c.compare("spec.externalTrafficPolicy", b.Spec.TrafficPolicy, string(live.Spec.ExternalTrafficPolicy))
	}
	if d.Mode == LoadBalancer {
		if len(b.Spec.SourceRanges) > 0 || own.has("f:spec", "f:loadBalancerSourceRanges") {
			c.compare("spec.loadBalancerSourceRanges",
				strings.Join(b.Spec.SourceRanges, ","), strings.Join(sortedSet(live.Spec.LoadBalancerSourceRanges), ","))
		}
		if b.Spec.Class != "" || own.has("f:spec", "f:loadBalancerClass") {
			c.compare("spec.loadBalancerClass", b.Spec.Class, value(live.Spec.LoadBalancerClass))
		}
	}
	slices.SortFunc(c.found, func(a, b Difference) int { return strings.Compare(a.Field, b.Field) })
	return c.found
}

type comparison struct{ found []Difference }

func (c *comparison) compare(field, want, got string) {
	if want != got {
		c.found = append(c.found, Difference{Field: field, Want: want, Got: got})
	}
}

func (c *comparison) metadata(live *corev1.Service, b body) {
	for key, want := range b.Metadata.Labels {
		c.compare("metadata.labels["+key+"]", want, live.Labels[key])
	}
	for key, want := range b.Metadata.Annotations {
		got, ok := live.Annotations[key]
		if !ok || got != want { // an empty value is a value
			c.found = append(c.found, Difference{Field: "metadata.annotations[" + key + "]", Want: show(want), Got: showIf(got, ok)})
		}
	}
	for _, key := range surplusAnnotations(live, b) {
		c.found = append(c.found, Difference{Field: "metadata.annotations[" + key + "]", Got: show(live.Annotations[key])})
	}
	owned := slices.ContainsFunc(live.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Kind == ownerKind && r.Name == b.Metadata.Labels[LabelApp]
	})
	if !owned {
		c.compare("metadata.ownerReferences", ownerKind+"/"+b.Metadata.Labels[LabelApp], "")
	}
}

func (c *comparison) ports(live *corev1.Service, ports []port) {
	for _, want := range ports {
		field := "spec.ports[" + want.Name + "]"
		got := findPort(live, want.Port)
		if got == nil {
			c.compare(field, fmt.Sprint(want.Port), "")
			continue
		}
		c.compare(field+".name", want.Name, got.Name)
		c.compare(field+".targetPort", fmt.Sprint(want.TargetPort), got.TargetPort.String())
		if want.NodePort != 0 {
			c.compare(field+".nodePort", fmt.Sprint(want.NodePort), fmt.Sprint(got.NodePort))
		}
	}
}

// findPort finds a TCP port by its number: the key by which Kubernetes merges
// ports, and which no other port can have.
func findPort(live *corev1.Service, number int32) *corev1.ServicePort {
	for i := range live.Spec.Ports {
		p := &live.Spec.Ports[i]
		if p.Port == number && (p.Protocol == corev1.ProtocolTCP || p.Protocol == "") {
			return p
		}
	}
	return nil
}

// ownAnnotations returns, sorted, the keys of ours that the live Service has.
func ownAnnotations(live *corev1.Service) []string {
	own, listed := ownedBy(live, isOurs), listedKeys(live)
	var keys []string
	for key := range live.Annotations {
		if key == AnnotationKeys || key == AnnotationStep ||
			slices.Contains(listed, key) || own.has("f:metadata", "f:annotations", "f:"+key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// surplusAnnotations returns those of ownAnnotations that the body has not.
func surplusAnnotations(live *corev1.Service, b body) []string {
	return slices.DeleteFunc(ownAnnotations(live), func(key string) bool {
		_, wanted := b.Metadata.Annotations[key]
		return wanted
	})
}

// ServiceTerminating reports whether the live Service is being deleted.
func ServiceTerminating(live *corev1.Service) bool {
	return live != nil && live.DeletionTimestamp != nil
}

// listedKeys reads the annotation AnnotationKeys; nothing if somebody has
// made it unreadable.
func listedKeys(live *corev1.Service) []string {
	var keys []string
	if json.Unmarshal([]byte(live.Annotations[AnnotationKeys]), &keys) != nil {
		return nil
	}
	return keys
}

// Fingerprint returns a short hash of what is ours of a live Service, which
// changes whenever Drift could come out differently; "" for nil.
func Fingerprint(live *corev1.Service) string {
	if live == nil {
		return ""
	}
	type fingerprint struct {
		Labels, Annotations, Selector map[string]string
		Owners                        []metav1.OwnerReference
		Ports                         []corev1.ServicePort
		Type                          corev1.ServiceType
		Policy                        corev1.ServiceExternalTrafficPolicy
		Ranges                        []string
		Class                         string
	}
	f := fingerprint{
		Labels:      pick(live.Labels, LabelApp, LabelManagedBy),
		Annotations: pick(live.Annotations, ownAnnotations(live)...),
		Selector:    pick(live.Spec.Selector, LabelApp),
		Owners:      live.OwnerReferences,
		Type:        live.Spec.Type,
		Policy:      live.Spec.ExternalTrafficPolicy,
		Ranges:      live.Spec.LoadBalancerSourceRanges,
		Class:       value(live.Spec.LoadBalancerClass),
	}
	for _, number := range []int32{PortReadWrite, PortReadOnly} {
		if p := findPort(live, number); p != nil {
			f.Ports = append(f.Ports, *p)
		}
	}
	return hash(f)
}

// pick returns the named entries of m that there are.
func pick(m map[string]string, keys ...string) map[string]string {
	picked := map[string]string{}
	for _, key := range keys {
		if v, ok := m[key]; ok {
			picked[key] = v
		}
	}
	return picked
}

// show makes a value readable where "" stands for absence.
func show(v string) string {
	if v == "" {
		return `""`
	}
	return v
}

func showIf(v string, ok bool) string {
	if !ok {
		return ""
	}
	return show(v)
}

func value(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
