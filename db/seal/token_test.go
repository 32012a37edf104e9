package seal_test

import (
	"strings"
	"testing"

	"posthorn/db/seal"
)

func TestATokenSaysWhatWasSignedAndNothingElse(t *testing.T) {
	t.Parallel()
	const first, second = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	ring := func(keys string) *seal.Ring {
		r, err := seal.NewRing(keys)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	old := ring(first)
	token := old.Token("unsubscribe", []byte("ten_a"))
	if again := old.Token("unsubscribe", []byte("ten_a")); again != token {
		t.Error("the same text makes another token")
	}
	for name, r := range map[string]*seal.Ring{"the key": old, "a newer key beside it": ring(second + "," + first)} {
		if text, ok := r.OpenToken("unsubscribe", token); !ok || string(text) != "ten_a" {
			t.Errorf("under %s: %q, %v", name, text, ok)
		}
	}
	payload, tag, _ := strings.Cut(token, ".")
	other := old.Token("unsubscribe", []byte("ten_b"))
	otherPayload, _, _ := strings.Cut(other, ".")
	for name, forged := range map[string]string{
		"another text":        otherPayload + "." + tag,
		"no tag":              payload,
		"an empty tag":        payload + ".",
		"half a tag":          payload + "." + tag[:10],
		"a longer tag":        payload + "." + tag + "AA",
		"nothing":             "",
		"junk":                "%%.%%",
		"other trailing bits": payload + "." + tag[:len(tag)-1] + "_",
	} {
		if text, ok := old.OpenToken("unsubscribe", forged); ok {
			t.Errorf("%s opens as %q", name, text)
		}
	}
	if _, ok := old.OpenToken("another purpose", token); ok {
		t.Error("a token of one sort passes for another")
	}
	if _, ok := ring(second).OpenToken("unsubscribe", token); ok {
		t.Error("another key opens it")
	}
}
