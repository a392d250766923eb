// A reverse proxy on the Coraza library, for comparison by `weir bench run`.
//
// Tuned as its makers advise: the library's own middleware, one WAF for all virtual servers, connections
// to the members kept, no log, buffers reused, a garbage collector that runs seldom.
package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/corazawaf/coraza/v3"
	corazahttp "github.com/corazawaf/coraza/v3/http"
)

const (
	// The library of the rules, as the build names it.
	library = "github.com/corazawaf/coraza/v3"
	// Requests to this folder are inspected where a third of them is.
	inspectedFolder = "/account/"
	// Buffers of bodies on their way.
	bufferBytes = 32 << 10
	// Clients that rest between two requests stay.
	idleTimeout = 600 * time.Second
	// With the memory of today the collector may run less often than by default (100).
	collectorPercent = 400
)

// What the configuration file says, a setting a line; rules are all lines behind the word `rules`.
type settings struct {
	workers          int
	servers          []server
	members          []*url.URL
	idlePerMember    int
	certificate, key string
	rules            string
}

// A virtual server: which of its requests are inspected (off, third, all), and where it listens.
type server struct {
	inspected, address string
}

func main() {
	log.SetFlags(0)
	check := flag.Bool("check", false, "check the configuration and end")
	version := flag.Bool("version", false, "tell the version of the library")
	flag.Parse()
	if *version {
		fmt.Printf("coraza %s (%s)\n", libraryVersion(), runtime.Version())
		return
	}
	settings, err := read(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	waf, err := coraza.NewWAF(coraza.NewWAFConfig().WithDirectives(settings.rules))
	if err != nil {
		log.Fatal(err)
	}
	if *check {
		return
	}
	runtime.GOMAXPROCS(settings.workers)
	debug.SetGCPercent(collectorPercent)
	log.Fatal(serve(settings, waf))
}

func libraryVersion() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, module := range build.Deps {
		if module.Path == library {
			return strings.TrimPrefix(module.Version, "v")
		}
	}
	return "unknown"
}

func read(path string) (*settings, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	settings := &settings{workers: 1}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadString('\n')
		if strings.TrimSpace(line) == "rules" {
			rules, err := io.ReadAll(lines)
			settings.rules = string(rules)
			return settings, err
		}
		if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(fields[0], "#") {
			if err := settings.set(fields); err != nil {
				return nil, fmt.Errorf("%s: %q: %w", path, line, err)
			}
		}
		if errors.Is(err, io.EOF) {
			return settings, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (s *settings) set(fields []string) (err error) {
	last := fields[len(fields)-1]
	switch {
	case fields[0] == "server" && len(fields) == 3:
		s.servers = append(s.servers, server{fields[1], last})
	case len(fields) != 2:
		err = errors.New("a word and its value are wanted")
	case fields[0] == "workers":
		s.workers, err = strconv.Atoi(last)
	case fields[0] == "idle_per_member":
		s.idlePerMember, err = strconv.Atoi(last)
	case fields[0] == "member":
		s.members = append(s.members, &url.URL{Scheme: "http", Host: last})
	case fields[0] == "certificate":
		s.certificate = last
	case fields[0] == "key":
		s.key = last
	default:
		err = errors.New("unknown word")
	}
	return err
}

// Serves until a listener fails.
func serve(settings *settings, waf coraza.WAF) error {
	plain := proxy(settings)
	guarded := corazahttp.WrapHandler(waf, plain)
	handlers := map[string]http.Handler{
		"off":   plain,
		"all":   guarded,
		"third": byFolder(guarded, plain),
	}
	config, err := tlsConfig(settings)
	if err != nil {
		return err
	}
	ended := make(chan error)
	for _, server := range settings.servers {
		handler, ok := handlers[server.inspected]
		if !ok {
			return fmt.Errorf("%s: what is inspected is off, third or all", server.address)
		}
		listener, err := net.Listen("tcp", server.address)
		if err != nil {
			return err
		}
		if config != nil {
			listener = tls.NewListener(listener, config)
		}
		own := &http.Server{
			Handler:     handler,
			IdleTimeout: idleTimeout,
			ErrorLog:    log.New(io.Discard, "", 0),
		}
		go func() { ended <- own.Serve(listener) }()
	}
	return <-ended
}

func byFolder(guarded, plain http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, inspectedFolder) {
			guarded.ServeHTTP(w, r)
		} else {
			plain.ServeHTTP(w, r)
		}
	})
}

// The same versions, suites and group of the key exchange as everybody's; HTTP/1.1 alone.
func tlsConfig(settings *settings) (*tls.Config, error) {
	if settings.certificate == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(settings.certificate, settings.key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates:     []tls.Certificate{pair},
		MinVersion:       tls.VersionTLS12,
		CurvePreferences: []tls.CurveID{tls.X25519},
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		},
		NextProtos: []string{"http/1.1"},
	}, nil
}

// The members take turns.
func proxy(settings *settings) http.Handler {
	var turn atomic.Uint64
	members := settings.members
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			member := members[turn.Add(1)%uint64(len(members))]
			r.Out.URL.Scheme, r.Out.URL.Host = member.Scheme, member.Host
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{
			MaxIdleConns:        0,
			MaxIdleConnsPerHost: settings.idlePerMember,
			IdleConnTimeout:     idleTimeout,
			DisableCompression:  true,
		},
		BufferPool: &buffers{},
		ErrorLog:   log.New(io.Discard, "", 0),
	}
}

type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if buffer, ok := b.pool.Get().(*[]byte); ok {
		return *buffer
	}
	return make([]byte, bufferBytes)
}

func (b *buffers) Put(buffer []byte) { b.pool.Put(&buffer) }
