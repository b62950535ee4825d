// Package seal is what a node and the daemon keep between themselves when a gatherer carries their stream: both prove
// that they know the node's token, which never leaves either of them, and everything after that is encrypted and
// authenticated (AES-256-GCM). The keys come from the token and a random number of each end (HKDF-SHA-256), so that no
// earlier stream can be played again; a message's number is its nonce, so that none can be left out, repeated or
// brought in another order.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

const (
	version = 1
	// nonceSize is the size of each end's random number.
	nonceSize = 32
	checkSize = 8
	// MaxOffer bounds an offer.
	MaxOffer = 1 + nonceSize + checkSize + 512
	// Overhead is how many bytes sealing adds to a message.
	Overhead = 1 + 16
	// partSize bounds what one sealed message holds of a larger one.
	partSize = 32 << 10
)

// ErrBroken says that a message was not sealed by the other end, or not as the next one.
var ErrBroken = errors.New("a message that the other end has not sealed, or not as its next one")

// Offer is how a node begins. It names the node's token by its part that anybody may see.
type Offer struct {
	Head  string // the token without its proof: FORM.NODE.ISSUED
	check [checkSize]byte
	bytes []byte
}

// checkOf is by what tokens of one head differ that were made with different secrets.
func checkOf(token string) (c [checkSize]byte) {
	sum := sha256.Sum256([]byte("fairway gathered " + token))
	copy(c[:], sum[:])
	return c
}

// NewOffer begins a stream of the node whose token it is.
func NewOffer(token string) (*Offer, error) {
	end := strings.LastIndexByte(token, '.')
	if end <= 0 {
		return nil, errors.New("the token is not a node's own")
	}
	o := &Offer{Head: token[:end], check: checkOf(token)}
	o.bytes = make([]byte, 1+nonceSize, 1+nonceSize+checkSize+end)
	o.bytes[0] = version
	rand.Read(o.bytes[1:]) // never fails
	o.bytes = append(append(o.bytes, o.check[:]...), o.Head...)
	if len(o.bytes) > MaxOffer {
		return nil, fmt.Errorf("the token has %d bytes before its proof, at most 512", end)
	}
	return o, nil
}

// ParseOffer reads an offer.
func ParseOffer(b []byte) (*Offer, error) {
	if len(b) <= 1+nonceSize+checkSize || len(b) > MaxOffer || b[0] != version {
		return nil, fmt.Errorf("an offer of %d bytes: want version %d and a token's head", len(b), version)
	}
	o := &Offer{bytes: append([]byte(nil), b...)}
	copy(o.check[:], b[1+nonceSize:])
	o.Head = string(b[1+nonceSize+checkSize:])
	return o, nil
}

// Bytes is the offer as it is sent.
func (o *Offer) Bytes() []byte { return o.bytes }

// Of says whether the offer is of a token.
func (o *Offer) Of(token string) bool {
	return strings.HasPrefix(token, o.Head+".") && checkOf(token) == o.check
}

// Accept is the daemon's answer to an offer, and its ends of the stream. The answer is the daemon's proof.
func (o *Offer) Accept(token string) (answer []byte, in, out *Half, err error) {
	answer = make([]byte, nonceSize)
	rand.Read(answer)
	if in, out, err = o.halves(token, answer); err != nil {
		return nil, nil, nil, err
	}
	return out.Seal(answer, Welcome, nil), in, out, nil
}

// Take checks the daemon's answer and returns the node's ends of the stream.
func (o *Offer) Take(token string, answer []byte) (in, out *Half, err error) {
	if len(answer) < nonceSize {
		return nil, nil, ErrBroken
	}
	out, in, err = o.halves(token, answer[:nonceSize])
	if err != nil {
		return nil, nil, err
	}
	kind, _, err := in.Open(append([]byte(nil), answer[nonceSize:]...))
	if err != nil || kind != Welcome {
		return nil, nil, fmt.Errorf("the answer is not of a daemon that knows this node's token: %w", ErrBroken)
	}
	return in, out, nil
}

// halves are the two directions. The keys hold the offer, so that a changed name or number is another key.
func (o *Offer) halves(token string, nonce []byte) (up, down *Half, err error) {
	prk, err := hkdf.Extract(sha256.New, []byte(token), nonce)
	if err != nil {
		return nil, nil, err
	}
	if up, err = newHalf(prk, "fairway gathered up "+string(o.bytes)); err != nil {
		return nil, nil, err
	}
	down, err = newHalf(prk, "fairway gathered down "+string(o.bytes))
	return up, down, err
}

// Kind says what a sealed message is.
type Kind byte

// The kinds.
const (
	Welcome Kind = 1 + iota // the daemon's proof
	Message                 // a message of collector/wire, or the rest of one
	Part                    // a part of a message, which goes on
	Ping                    // asks for a Pong
	Pong
	Via // the gatherer's address, as the node has it; the node's first
)

// Half is one direction of a stream. It is for one goroutine at a time.
type Half struct {
	aead  cipher.AEAD
	nonce [12]byte
	next  uint64
	plain [1]byte
}

func newHalf(prk []byte, info string) (*Half, error) {
	key, err := hkdf.Expand(sha256.New, prk, info, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &Half{aead: aead}, nil
}

func (h *Half) step() []byte {
	binary.BigEndian.PutUint64(h.nonce[4:], h.next)
	h.next++
	return h.nonce[:]
}

// Seal appends a sealed message to b; b and text do not overlap.
func (h *Half) Seal(b []byte, kind Kind, text []byte) []byte {
	// The kind is authenticated beside the text, which so is sealed where it lies.
	h.plain[0] = byte(kind)
	b = append(b, byte(kind))
	return h.aead.Seal(b, h.step(), text, h.plain[:])
}

// Open opens the next message where it lies.
func (h *Half) Open(sealed []byte) (Kind, []byte, error) {
	if len(sealed) < Overhead {
		return 0, nil, ErrBroken
	}
	h.plain[0] = sealed[0]
	text, err := h.aead.Open(sealed[1:1], h.step(), sealed[1:], h.plain[:])
	if err != nil {
		return 0, nil, ErrBroken
	}
	return Kind(sealed[0]), text, nil
}

// Parts calls send with the sealed messages that make up one message, each in b grown as needed.
func (h *Half) Parts(b, msg []byte, send func(sealed []byte) error) ([]byte, error) {
	for len(msg) > partSize {
		b = h.Seal(b[:0], Part, msg[:partSize])
		if err := send(b); err != nil {
			return b, err
		}
		msg = msg[partSize:]
	}
	b = h.Seal(b[:0], Message, msg)
	return b, send(b)
}

// Whole puts messages together from their parts.
type Whole struct {
	parts []byte
	// Most bounds a message.
	Most int
}

// Add takes a Message or Part and returns the message once it is whole; it is valid until the next Add.
func (w *Whole) Add(kind Kind, text []byte) (msg []byte, whole bool, err error) {
	if len(w.parts)+len(text) > w.Most {
		return nil, false, fmt.Errorf("message of more than %d bytes", w.Most)
	}
	if kind == Message && len(w.parts) == 0 {
		return text, true, nil
	}
	w.parts = append(w.parts, text...)
	if kind == Part {
		return nil, false, nil
	}
	msg, w.parts = w.parts, nil
	return msg, true, nil
}
