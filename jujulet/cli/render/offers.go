// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// RemoteEndpoint is an endpoint of an offer.
type RemoteEndpoint struct {
	Interface string `json:"interface" yaml:"interface"`
	Role      string `json:"role" yaml:"role"`
}

// RemoteApplication is a consumed offer as the status shows it.
type RemoteApplication struct {
	URL       string                    `json:"url" yaml:"url"`
	Endpoints map[string]RemoteEndpoint `json:"endpoints,omitempty" yaml:"endpoints,omitempty"`
	Life      string                    `json:"life,omitempty" yaml:"life,omitempty"`
	Status    Value                     `json:"application-status" yaml:"application-status"`
	Relations map[string][]string       `json:"relations,omitempty" yaml:"relations,omitempty"`
}

// Offer is an offer as the status shows it.
type Offer struct {
	Application string                    `json:"application" yaml:"application"`
	Charm       string                    `json:"charm,omitempty" yaml:"charm,omitempty"`
	Total       int                       `json:"total-connected-count,omitempty" yaml:"total-connected-count,omitempty"`
	Active      int                       `json:"active-connected-count,omitempty" yaml:"active-connected-count,omitempty"`
	Endpoints   map[string]RemoteEndpoint `json:"endpoints" yaml:"endpoints"`
}

// ListedOffer is an offer of "juju offers".
type ListedOffer struct {
	Application string                    `json:"application" yaml:"application"`
	Store       string                    `json:"store,omitempty" yaml:"store,omitempty"`
	Charm       string                    `json:"charm,omitempty" yaml:"charm,omitempty"`
	URL         string                    `json:"offer-url" yaml:"offer-url"`
	Endpoints   map[string]RemoteEndpoint `json:"endpoints" yaml:"endpoints"`
	Connections []Connection              `json:"connections,omitempty" yaml:"connections,omitempty"`
	Users       map[string]OfferUser      `json:"users,omitempty" yaml:"users,omitempty"`
}

// Connection is one use of a [ListedOffer].
type Connection struct {
	Model    string           `json:"source-model-uuid" yaml:"source-model-uuid"`
	User     string           `json:"username" yaml:"username"`
	Relation int              `json:"relation-id" yaml:"relation-id"`
	Endpoint string           `json:"endpoint" yaml:"endpoint"`
	Status   ConnectionStatus `json:"status" yaml:"status"`
}

// ConnectionStatus is where the relation of a [Connection] stands.
type ConnectionStatus struct {
	Current string `json:"current" yaml:"current"`
	Since   string `json:"since,omitempty" yaml:"since,omitempty"`
}

// OfferUser is a user's access to an offer.
type OfferUser struct {
	DisplayName string `json:"display-name,omitempty" yaml:"display-name,omitempty"`
	Access      string `json:"access" yaml:"access"`
}

// FoundOffer is an offer of "juju find-offers"; "juju show-offer" has its
// description too.
type FoundOffer struct {
	Description string                    `json:"description,omitempty" yaml:"description,omitempty"`
	Access      string                    `json:"access" yaml:"access"`
	Endpoints   map[string]RemoteEndpoint `json:"endpoints" yaml:"endpoints"`
	Users       map[string]OfferUser      `json:"users,omitempty" yaml:"users,omitempty"`
}

func offerUsers() map[string]OfferUser {
	return map[string]OfferUser{control.User: {DisplayName: control.User, Access: access}}
}

func remoteEndpoints(endpoints map[string]model.Endpoint) map[string]RemoteEndpoint {
	out := map[string]RemoteEndpoint{}
	for name, e := range endpoints {
		out[name] = RemoteEndpoint{e.Interface, string(e.Role)}
	}
	return out
}

func (o Options) remote(r model.RemoteStatus) RemoteApplication {
	return RemoteApplication{
		URL: r.URL, Endpoints: remoteEndpoints(r.Endpoints), Life: life(r.Life), Status: o.value(r.Status), Relations: r.Relations,
	}
}

// active counts the uses of an offer that are not being removed.
func active(offer model.OfferStatus) int {
	n := 0
	for _, c := range offer.Connections {
		if c.Status == "joined" {
			n++
		}
	}
	return n
}

func offer(s model.OfferStatus) Offer {
	return Offer{
		Application: s.Application, Charm: s.Charm, Total: len(s.Connections), Active: active(s), Endpoints: remoteEndpoints(s.Endpoints),
	}
}

// Offers is the list of a model's offers for json and yaml.
func Offers(s model.Status, now time.Time) map[string]ListedOffer {
	out := map[string]ListedOffer{}
	for name, o := range s.Offers {
		listed := ListedOffer{
			Application: o.Application, Store: s.Model.Controller, Charm: o.Charm, URL: o.URL, Endpoints: remoteEndpoints(o.Endpoints),
			Users: offerUsers(),
		}
		for _, c := range o.Connections {
			listed.Connections = append(listed.Connections, Connection{
				Model: c.Model, User: control.User, Relation: c.Relation, Endpoint: c.Endpoint,
				Status: ConnectionStatus{Current: c.Status, Since: Friendly(c.Since, now)},
			})
		}
		out[name] = listed
	}
	return out
}

// Found is an offer for json and yaml, with its description if it is to be shown.
func Found(o model.OfferStatus, describe bool) FoundOffer {
	out := FoundOffer{Access: access, Endpoints: remoteEndpoints(o.Endpoints), Users: offerUsers()}
	if describe {
		out.Description = o.Description
	}
	return out
}

// OfferConnections are the rows of "juju offers": one for each use.
func OfferConnections(s model.Status) [][]string {
	var rows [][]string
	for _, name := range sortedNames(s.Offers) {
		o := s.Offers[name]
		if len(o.Connections) == 0 {
			rows = append(rows, []string{name, "-", "", "", "", "", "", ""})
		}
		for i, c := range o.Connections {
			if i > 0 {
				name = ""
			}
			e := o.Endpoints[c.Endpoint]
			rows = append(rows, []string{name, control.User, strconv.Itoa(c.Relation), c.Status, c.Endpoint, e.Interface, string(e.Role), ""})
		}
	}
	return rows
}

// OfferSummary are the rows of "juju offers --format summary": one for each
// endpoint.
func OfferSummary(s model.Status) [][]string {
	var rows [][]string
	for _, name := range sortedNames(s.Offers) {
		o := s.Offers[name]
		row := []string{name, o.Application, o.Charm, connected(o), s.Model.Controller, o.URL}
		for _, endpoint := range sortedNames(o.Endpoints) {
			e := o.Endpoints[endpoint]
			rows = append(rows, append(row, endpoint, e.Interface, string(e.Role)))
			row = []string{"", "", "", "", "", ""}
		}
	}
	return rows
}

func connected(o model.OfferStatus) string {
	return fmt.Sprintf("%d/%d", active(o), len(o.Connections))
}

// remoteTable is the section SAAS of the status.
func remoteTable(s model.Status) *table {
	t := newTable("SAAS", "Status", "Store", "URL")
	for _, name := range sortedNames(s.Remotes) {
		r := s.Remotes[name]
		store, url, _ := strings.Cut(r.URL, ":")
		t.add(plain(name), cell{r.Status.Status, statusColour(r.Status.Status)}, plain(store), plain(url))
	}
	return t
}

// offerTable is the section of offers of the status.
func offerTable(s model.Status) *table {
	t := newTable("Offer", "Application", "Charm", "Rev", "Connected", "Endpoint", "Interface", "Role")
	for _, name := range sortedNames(s.Offers) {
		o := s.Offers[name]
		row := []cell{plain(name), plain(o.Application), plain(o.CharmName), plain(strconv.Itoa(o.CharmRev)), plain(connected(o))}
		for _, endpoint := range sortedNames(o.Endpoints) {
			e := o.Endpoints[endpoint]
			t.add(append(row, plain(endpoint), plain(e.Interface), plain(string(e.Role)))...)
			row = []cell{plain(""), plain(""), plain(""), plain(""), plain("")}
		}
	}
	return t
}

// shownRelations are the relations without those that only the consuming side of
// an offer is shown.
func shownRelations(s model.Status) []model.RelationStatus {
	var out []model.RelationStatus
	for _, r := range s.Relations {
		if !r.Proxy {
			out = append(out, r)
		}
	}
	return out
}
