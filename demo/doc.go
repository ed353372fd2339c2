// Package demo shows the product at work on real text: a corpus in English
// and Chinese that ships inside the binary, loaded into a store and asked
// questions. It uses nothing but the public interface of package loci.
package demo
