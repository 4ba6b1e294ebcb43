// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"net/http"
	"runtime"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// serverVersion is the release whose rules this server follows.
const (
	serverMajor   = "1"
	serverMinor   = "36"
	serverVersion = "v1.36.3+jujulet"
)

// verbs are what is served for every kind of the table.
var verbs = metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}

// nonResource answers discovery, OpenAPI, version and health.
func (c *call) nonResource() error {
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		return methodNotAllowed(c.action)
	}
	path := strings.TrimSuffix(c.r.URL.Path, "/")
	switch path {
	case "/healthz", "/livez", "/readyz":
		c.text("ok")
	case "/version":
		c.json(http.StatusOK, version.Info{Major: serverMajor, Minor: serverMinor, GitVersion: serverVersion,
			GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH})
	case "/api":
		c.json(http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case "/apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, gv := range c.rules.groups() {
			list.Groups = append(list.Groups, apiGroup(gv))
		}
		c.json(http.StatusOK, list)
	default:
		return c.discoverGroup(path)
	}
	return nil
}

// discoverGroup answers /apis/GROUP, /apis/GROUP/VERSION, /api/v1 and /openapi/...
func (c *call) discoverGroup(path string) error {
	if strings.HasPrefix(path, "/openapi/") {
		return c.openAPI(path)
	}
	for _, gv := range append(c.rules.groups(), schema.GroupVersion{Version: "v1"}) {
		switch path {
		case "/apis/" + gv.Group:
			if gv.Group != "" {
				c.json(http.StatusOK, apiGroup(gv))
				return nil
			}
		case groupPath(gv):
			c.json(http.StatusOK, c.rules.resources(gv))
			return nil
		}
	}
	return unknownPath(c.action)
}

func (c *call) text(body string) {
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = c.w.Write([]byte(body))
}

// groups are the API groups of the table but the core one, sorted.
func (r *rules) groups() []schema.GroupVersion {
	out := []schema.GroupVersion{{Group: "authorization.k8s.io", Version: "v1"}}
	for _, k := range r.kinds {
		if gv := k.gvk.GroupVersion(); gv.Group != "" && !slices.Contains(out, gv) {
			out = append(out, gv)
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupVersion) int { return strings.Compare(a.Group, b.Group) })
	return out
}

func groupPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

func apiGroup(gv schema.GroupVersion) metav1.APIGroup {
	v := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
	return metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: gv.Group,
		Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
}

// resources lists the kinds of a group with their verbs.
func (r *rules) resources(gv schema.GroupVersion) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String(), APIResources: []metav1.APIResource{}}
	if gv.Group == "authorization.k8s.io" {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: "selfsubjectaccessreviews", SingularName: "selfsubjectaccessreview", Kind: "SelfSubjectAccessReview", Verbs: metav1.Verbs{"create"}})
	}
	for _, k := range r.kinds {
		if k.gvk.GroupVersion() != gv {
			continue
		}
		res := metav1.APIResource{Name: k.plural, SingularName: strings.ToLower(string(k.Kind)), Namespaced: k.namespaced, Kind: string(k.Kind), Verbs: verbs, ShortNames: k.short}
		if k.Kind != Service && k.Kind != Namespace {
			res.Verbs = append(slices.Clone(verbs), "deletecollection")
		}
		if k.Kind == Service || k.Kind == Pod || k.Kind == StatefulSet {
			res.Categories = []string{"all"}
		}
		list.APIResources = append(list.APIResources, res)
		if k.hasStatus {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.plural + "/status", Namespaced: k.namespaced, Kind: string(k.Kind), Verbs: metav1.Verbs{"get", "patch", "update"}})
		}
	}
	return list
}
