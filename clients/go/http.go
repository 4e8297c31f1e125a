package rollcall

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const answerBytesMax = 1 << 28

// httpAPI sends JSON over HTTP to one server. It may be used by any number of goroutines.
type httpAPI struct {
	base   string
	client *http.Client
}

func newHTTPAPI(text string, tlsConfig *tls.Config) (*httpAPI, error) {
	address, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("rollcall: %w", err)
	}
	scheme := strings.Replace(address.Scheme, "ws", "http", 1)
	if scheme != "http" && scheme != "https" || address.Host == "" {
		return nil, fmt.Errorf("rollcall: not an HTTP address: %q", text)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = tlsConfig
	return &httpAPI{base: scheme + "://" + address.Host, client: &http.Client{Transport: transport}}, nil
}

// path is a path below /v1 with each segment escaped.
func path(segments ...string) string {
	text := "/v1"
	for _, segment := range segments {
		text += "/" + url.PathEscape(segment)
	}
	return text
}

// call sends a JSON body (nil: none) and reads the answer into `into` (nil: ignored).
func (api *httpAPI) call(ctx context.Context, token, method, target string, body, into any) error {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return newError("INVALID_MESSAGE", err.Error())
		}
		reader = bytes.NewReader(text)
	}
	return api.exchange(ctx, token, method, target, "application/json", reader, into)
}

// exchange is call with a body of any type.
func (api *httpAPI) exchange(ctx context.Context, token, method, target, contentType string, body io.Reader, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, api.base+target, body)
	if err != nil {
		return newError("INVALID_MESSAGE", err.Error())
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := api.client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return newError("SERVICE_UNAVAILABLE", err.Error())
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax))
	if err != nil {
		return newError("SERVICE_UNAVAILABLE", err.Error())
	}
	if response.StatusCode >= 300 {
		return httpError(response, text)
	}
	if into == nil || len(text) == 0 {
		return nil
	}
	return json.Unmarshal(text, into)
}

// httpError also has a code for answers that come from a proxy before the server.
func httpError(response *http.Response, text []byte) *Error {
	var answer struct{ Error errorMessage }
	_ = json.Unmarshal(text, &answer) // what cannot be read has the code of its status
	failure := answer.Error.asError()
	failure.Status = response.StatusCode
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && failure.RetryAfter == 0 {
		failure.RetryAfter = time.Duration(seconds) * time.Second
	}
	if failure.Code == "" {
		failure.Message = response.Status
		failure.Code = map[int]string{401: "UNAUTHENTICATED", 403: "FORBIDDEN", 404: "NOT_FOUND",
			413: "MESSAGE_TOO_LARGE", 429: "RATE_LIMITED"}[response.StatusCode]
		if failure.Code == "" {
			failure.Code = "INVALID_MESSAGE"
			if response.StatusCode >= 500 {
				failure.Code = "SERVICE_UNAVAILABLE"
			}
		}
	}
	return failure
}
