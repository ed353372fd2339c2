package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/embed"
	rerankbyurl "github.com/loci-memory/loci/rerank/byurl"
)

const checkEmbedder = "embedder"

// models tries the models in force on a sample.
func (d *doctor) models(ctx context.Context) {
	d.embedder(ctx)
	v := d.app.settings.get("reranker")
	if v.Value == modelNone || v.Value == "" {
		return
	}
	const check = "reranker"
	o, err := d.app.endpoint("reranker", false)
	var r rerankbyurl.Reranker
	if err == nil {
		r, _, err = rerankbyurl.Open(v.Value, rerankbyurl.Options{Endpoint: o})
	}
	if err != nil {
		d.add(check, levelWarning, d.app.failure(err).Message, "Correct --reranker, LOCI_RERANKER or the key; until then searches go without it.")
		return
	}
	defer r.Close() // of idle connections
	ctx, cancel := context.WithTimeout(ctx, searchPatience)
	defer cancel()
	begin := time.Now()
	if _, err := r.Rerank(ctx, "a lamp", []string{"The lamps are lit at seven."}); err != nil {
		d.add(check, levelWarning, shownModel(v)+" does not answer: "+err.Error(), "Start the service or correct its address; until then searches go without it.")
		return
	}
	d.add(check, levelOK, fmt.Sprintf("%s, %v for a sample", shownModel(v), time.Since(begin).Round(time.Millisecond/10)), "")
}

func (d *doctor) embedder(ctx context.Context) {
	if d.app.embedderOff() {
		text := "none: searches go by words alone"
		if d.app.deps.Model == nil {
			d.add(checkEmbedder, levelNote, text, "This build has no model of its own; name a service with --embedder or LOCI_EMBEDDER.")
		} else {
			d.add(checkEmbedder, levelNote, text, "To find by meaning as well: --embedder builtin, or that in LOCI_EMBEDDER or the configuration file.")
		}
		return
	}
	m, err := d.app.openModel(false)
	if err != nil {
		d.add(checkEmbedder, levelWarning, d.app.failure(err).Message, "Correct --embedder, LOCI_EMBEDDER or the key; until then searches go by words alone.")
		return
	}
	defer m.Close() // of idle connections
	ctx, cancel := context.WithTimeout(ctx, searchPatience)
	defer cancel()
	var took time.Duration
	for range 2 { // the first one may have to load the model
		begin := time.Now()
		_, err = m.Embedder.Embed(ctx, []string{"The lamps are lit at seven."}, embed.Query)
		took = time.Since(begin)
	}
	if err != nil {
		advice := "Start the service, or choose another with --embedder; until then searches go by words alone."
		if m.Dimension > 0 { // in this process: there is nothing to start
			advice = "Try again when the machine is less busy; until then searches go by words alone."
		}
		d.add(checkEmbedder, levelWarning, m.Title+" does not answer: "+err.Error(), advice)
		return
	}
	d.add(checkEmbedder, levelOK, fmt.Sprintf("%s, %v for a sample", m.Title, took.Round(10*time.Microsecond)), "")
}

// callersModel is the model that agent memories name for spaces whose vectors callers
// bring.
const callersModel = "caller"

// vectors looks at the spaces of a store and at what lacks a vector.
func (d *doctor) vectors(ctx context.Context, db *loci.DB) {
	const check = "vectors"
	spaces, err := db.Embeddings().Spaces(ctx)
	if err != nil {
		d.add(check, levelTrouble, "the spaces cannot be read: "+err.Error(), "Keep a copy of the directory and restore a backup.")
		return
	}
	m, err := d.app.openModel(false)
	if err != nil {
		return // told already
	}
	inForce := ""
	if m != nil {
		defer m.Close() // of idle connections
		inForce = m.ID
	}
	there := false
	for _, sp := range spaces {
		if sp.ID == inForce {
			there = true
			continue
		}
		if sp.Model == callersModel { // nothing could make them again
			d.add(check, levelOK, "space "+sp.ID+" holds vectors that agent memories were given", "")
			continue
		}
		if m == nil {
			d.add(check, levelNote, "space "+sp.ID+" is not used while there is no embedder", "If no agent memory needs it (loci agent status): loci embeddings delete-space \""+sp.ID+"\"")
		} else {
			d.add(check, levelNote, "space "+sp.ID+" is not that of the embedder in force", "If no other program and no agent memory uses it (loci agent status): loci embeddings delete-space \""+sp.ID+"\"")
		}
	}
	if m == nil {
		return
	}
	if !there {
		d.add(check, levelNote, "there are none of this embedder yet", "Make them with: loci embeddings sync")
		return
	}
	limited, cancel := context.WithTimeout(ctx, searchPatience)
	defer cancel()
	if err := m.Bind(limited, db); err != nil && loci.CodeOf(err) == loci.ErrConflict {
		d.add(check, levelWarning, d.app.failure(err).Message, "Until then searches go by words alone.")
		return
	}
	d.coverage(ctx, db, m.ID)
}

// coverage tells by tier how far the namespace in force has its vectors.
func (d *doctor) coverage(ctx context.Context, db *loci.DB, space string) {
	const check = "vectors"
	namespace := d.app.settings.get("namespace").Value
	tiers, err := db.Embeddings().Status(ctx, namespace, space)
	if err != nil {
		d.add(check, levelNote, "they cannot be counted: "+d.app.failure(err).Message, "Look again when the index is usable.")
		return
	}
	on, err := db.Embeddings().NamespaceVectorization(ctx, namespace)
	if err != nil {
		d.add(check, levelTrouble, "the switches cannot be read: "+err.Error(), "Keep a copy of the directory and restore a backup.")
		return
	}
	if !on {
		d.add(check, levelNote, "namespace "+namespace+" is turned off", "Turn it on with: loci embeddings enable")
		return
	}
	var parts, off []string
	missing := int64(0)
	for _, t := range tiers {
		switch {
		case t.Records == 0:
		case !t.Enabled:
			off = append(off, string(t.Tier))
		default:
			missing += t.Records - t.Vectors - t.Left
			parts = append(parts, fmt.Sprintf("%s %d of %d", t.Tier, t.Vectors, t.Records))
		}
	}
	text := "namespace " + namespace + ": " + strings.Join(parts, ", ")
	if len(parts) == 0 {
		text = "namespace " + namespace + " has nothing to make them of"
	}
	if missing > 0 {
		d.add(check, levelNote, text, "Make what is missing with: loci embeddings sync")
	} else {
		d.add(check, levelOK, text, "")
	}
	for _, t := range off {
		d.add(check, levelNote, "tier "+t+" is turned off in namespace "+namespace, "Turn it on with: loci embeddings enable "+t)
	}
}
