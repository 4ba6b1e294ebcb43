// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package render

import (
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

// Cluster writes a view of the embedded cluster as tables.
func Cluster(w io.Writer, view control.Cluster) error {
	nodes := newTable("Node", "Ready", "Internal IP", "External IP", "Units")
	for _, n := range view.Nodes {
		nodes.add(plain(n.Name), plain(yesNo(n.Ready)), plain(n.InternalIP), plain(n.ExternalIP), plain(strings.Join(n.Units, ",")))
	}
	services := newTable("Service", "Type", "Cluster IP", "Addresses", "Ports")
	for _, s := range view.Services {
		services.add(plain(s.Name), plain(s.Type), plain(s.ClusterIP), plain(strings.Join(s.Addresses, ",")), plain(strings.Join(s.Ports, ",")))
	}
	if err := nodes.write(w, false); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	if err := services.write(w, false); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return LoadBalancer(w, view.LoadBalancer)
}

// LoadBalancer writes the load balancer's settings as a table.
func LoadBalancer(w io.Writer, s control.LBSettings) error {
	pool := s.Pool
	if pool == "" {
		pool = "none"
	}
	t := newTable("Load balancer", "Assign delay", "Answer delay", "DNS delay", "Hold", "Broken", "Pool")
	t.add(plain(string(s.Kind)), plain(s.AssignDelay.String()), plain(s.AnswerDelay.String()), plain(s.DNSDelay.String()),
		plain(yesNo(s.Hold)), plain(yesNo(s.Break)), plain(pool))
	return t.write(w, false)
}

// Events writes Kubernetes events as a table.
func Events(w io.Writer, events []control.Event, zone *time.Location) error {
	t := newTable("Last seen", "Type", "Reason", "Object", "Count", "Message")
	for _, e := range events {
		t.add(plain(e.Time.In(zone).Format("15:04:05")), plain(e.Type), plain(e.Reason), plain(e.Object),
			plain(strconv.Itoa(e.Count)), plain(e.Message))
	}
	return t.write(w, false)
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
