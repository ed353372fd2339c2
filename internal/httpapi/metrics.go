package httpapi

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/loci-memory/loci"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are the figures of a server, in a registry of its own. Their labels are
// names of operations and kinds and statuses, never anything that a request
// holds.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	handler  http.Handler
}

func newMetrics(h *handler) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "loci_http_requests_total", Help: "Requests that were answered, by what was asked for and HTTP status.",
		}, []string{"operation", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "loci_http_request_duration_seconds", Help: "Time from a request's header to the end of its answer.",
			Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 60},
		}, []string{"operation"}),
	}
	gauge := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	}
	r := prometheus.NewRegistry()
	r.MustRegister(m.requests, m.seconds, &storeFigures{h},
		gauge("loci_http_running", "Operations at work.", func() float64 { return float64(len(h.running)) }),
		gauge("loci_http_change_feeds", "Change feeds that are open.", func() float64 { return float64(len(h.streams)) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "loci_build_info", Help: "1, with the program's version.", ConstLabels: prometheus.Labels{"version": h.Version},
		}, func() float64 { return 1 }),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.handler = promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(h.Log.Handler(), slog.LevelWarn), MaxRequestsInFlight: 4, Timeout: 10 * time.Second,
		ErrorHandling: promhttp.ContinueOnError, // a store that does not answer must not hide the rest
	})
	return m
}

func (m *metrics) observe(route string, status int, took time.Duration) {
	if status == 0 {
		status = 499 // the client went before there was an answer
	}
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}

// serveMetrics answers only who may know about the whole store.
func (h *handler) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if !loci.AccessFrom(r.Context()).IsAdmin() {
		h.problem(w, refuse(http.StatusForbidden, "The caller may not do this", loci.ErrForbidden, "needs a token with admin"))
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.WriteTimeout))
	h.metrics.handler.ServeHTTP(w, r)
}

// storeFigures are the store's counters, asked for when somebody looks.
type storeFigures struct{ h *handler }

// figure is one of the store's counters.
type figure struct {
	desc *prometheus.Desc
	get  func(*loci.HealthReport) float64
}

func (*storeFigures) figures() []figure {
	of := func(name, help string, get func(*loci.HealthReport) float64) figure {
		return figure{prometheus.NewDesc(name, help, nil, nil), get}
	}
	return []figure{
		of("loci_store_revision", "Revision of the store.", func(r *loci.HealthReport) float64 { return float64(r.Revision) }),
		of("loci_store_pending_index_updates", "Revisions that the index does not have.", func(r *loci.HealthReport) float64 { return float64(r.PendingIndexUpdates) }),
		of("loci_store_journal_revisions", "Revisions whose changes are kept.", func(r *loci.HealthReport) float64 { return float64(r.JournalLength) }),
		of("loci_store_index_usable", "1 while the index can be used.", func(r *loci.HealthReport) float64 {
			if r.IndexUsable {
				return 1
			}
			return 0
		}),
		of("loci_store_indexed_documents", "Documents in the index.", func(r *loci.HealthReport) float64 { return float64(r.IndexedDocuments) }),
		of("loci_store_vectors", "Vectors in the index.", func(r *loci.HealthReport) float64 { return float64(r.Vectors) }),
		of("loci_store_dropped_events", "Log events lost because their sink was slow.", func(r *loci.HealthReport) float64 { return float64(r.DroppedEvents) }),
	}
}

func (*storeFigures) records() *prometheus.Desc {
	return prometheus.NewDesc("loci_store_records", "Records of the store, by kind.", []string{"kind"}, nil)
}

func (*storeFigures) up() *prometheus.Desc {
	return prometheus.NewDesc("loci_store_up", "1 while the store answers.", nil, nil)
}

// Describe implements prometheus.Collector.
func (s *storeFigures) Describe(out chan<- *prometheus.Desc) {
	out <- s.up()
	out <- s.records()
	for _, f := range s.figures() {
		out <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (s *storeFigures) Collect(out chan<- prometheus.Metric) {
	report, err := s.h.health(s.h.stopping)
	if err != nil {
		s.h.note(err)
		out <- prometheus.MustNewConstMetric(s.up(), prometheus.GaugeValue, 0)
		return
	}
	out <- prometheus.MustNewConstMetric(s.up(), prometheus.GaugeValue, 1)
	for _, f := range s.figures() {
		out <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, f.get(report))
	}
	for kind, n := range report.Counts {
		out <- prometheus.MustNewConstMetric(s.records(), prometheus.GaugeValue, float64(n), kind)
	}
}
