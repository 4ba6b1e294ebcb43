// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	"go.etcd.io/bbolt"
)

// keysBucket holds the certificate authority, the API's key and all service
// account tokens; the file that it is in is readable by its owner only.
var keysBucket = []byte("controller-keys")

// keyYears is how long certificates last, in years.
const keyYears = 20

// keyStore keeps secrets of the controller across restarts.
type keyStore struct{ db *bbolt.DB }

// read returns the value of name, nil if there is none.
func (k keyStore) read(name string) ([]byte, error) {
	var value []byte
	err := k.db.View(func(tx *bbolt.Tx) error {
		if bucket := tx.Bucket(keysBucket); bucket != nil {
			value = bytes.Clone(bucket.Get([]byte(name)))
		}
		return nil
	})
	return value, err
}

// get returns the value of name, made by create and stored the first time.
func (k keyStore) get(name string, create func() ([]byte, error)) ([]byte, error) {
	value, err := k.read(name)
	if err == nil && value != nil {
		return value, nil
	}
	err = k.db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists(keysBucket)
		if err != nil {
			return err
		}
		if stored := bucket.Get([]byte(name)); stored != nil {
			value = bytes.Clone(stored)
			return nil
		}
		if value, err = create(); err != nil {
			return err
		}
		return bucket.Put([]byte(name), value)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot keep key %q: %w", name, err)
	}
	return value, nil
}

// remove forgets the value of name.
func (k keyStore) remove(name string) error {
	return k.db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(keysBucket)
		if bucket == nil {
			return nil
		}
		return bucket.Delete([]byte(name))
	})
}

// count adds one to a counter and returns it; the first is 1.
func (k keyStore) count(name string) (uint64, error) {
	var n uint64
	err := k.db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists(keysBucket)
		if err != nil {
			return err
		}
		if stored := bucket.Get([]byte("count/" + name)); len(stored) == 8 {
			n = binary.BigEndian.Uint64(stored)
		}
		n++
		return bucket.Put([]byte("count/"+name), binary.BigEndian.AppendUint64(nil, n))
	})
	if err != nil {
		return 0, fmt.Errorf("cannot count %q: %w", name, err)
	}
	return n, nil
}

// currentKey is where the name of the current model is.
const currentKey = "current-model"

// set replaces the value of name.
func (k keyStore) set(name string, value []byte) error {
	return k.db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists(keysBucket)
		if err != nil {
			return err
		}
		return bucket.Put([]byte(name), value)
	})
}

// token returns the bearer token of a service account, "namespace/name".
func (k keyStore) token(account string) (string, error) {
	value, err := k.get("token/"+account, func() ([]byte, error) {
		raw := make([]byte, 32)
		if _, err := rand.Read(raw); err != nil {
			return nil, err
		}
		return []byte(hex.EncodeToString(raw)), nil
	})
	return string(value), err
}

// removeToken forgets the token of a service account.
func (k keyStore) removeToken(account string) error { return k.remove("token/" + account) }

// authority returns the certificate authority's certificate as PEM, and the
// API server's certificate.
func (k keyStore) authority(names []string, address string) ([]byte, tls.Certificate, error) {
	var none tls.Certificate
	bundle, err := k.get("authority", func() ([]byte, error) { return newAuthority(names, address, time.Now()) })
	if err != nil {
		return nil, none, err
	}
	ca, rest := pem.Decode(bundle)
	if ca == nil {
		return nil, none, fmt.Errorf("cannot read the certificate authority: not PEM")
	}
	cert, err := tls.X509KeyPair(rest, rest)
	if err != nil {
		return nil, none, fmt.Errorf("cannot read the API server's certificate: %w", err)
	}
	return pem.EncodeToMemory(ca), cert, nil
}

// newAuthority makes an authority and one server certificate, and returns as
// PEM: the authority's certificate, the server's certificate, its key. The
// authority's own key is not kept: nothing else is ever signed.
func newAuthority(names []string, address string, now time.Time) ([]byte, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "jujulet"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.AddDate(keyYears, 0, 0),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "kubernetes"},
		NotBefore:    ca.NotBefore,
		NotAfter:     ca.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     names,
		IPAddresses:  []net.IP{net.ParseIP(address)},
	}
	serverDER, err := x509.CreateCertificate(rand.Reader, server, ca, &key.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, block := range []*pem.Block{
		{Type: "CERTIFICATE", Bytes: caDER},
		{Type: "CERTIFICATE", Bytes: serverDER},
		{Type: "EC PRIVATE KEY", Bytes: keyDER},
	} {
		if err := pem.Encode(&out, block); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}
