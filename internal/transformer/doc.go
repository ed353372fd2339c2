// Package transformer runs BERT-shaped encoders with 4-bit weights and 8-bit
// activations, on kernels of its own: token ids in, one vector a text out.
//
// Weights stay as they are stored, 4 bits each with a float16 scale for every
// 32 of them along a row. Activations are cut into the same blocks, each with a
// scale of its own and codes from -127 to 127, because some channels of such
// models are a hundred times as large as the others. A block's products are
// summed in integers without loss, and blocks in float32 in a fixed order, so
// that a text's vector does not depend on the texts beside it.
package transformer

// Numerics numbers the arithmetic: it is raised whenever the bits of any vector
// change, so that vectors made before and after are not taken for the same
// model's. All processors give the same bits.
const Numerics = 1
