//! The model through its doors: documents in, batches out; wire in, domain out, and back.

mod documents;
mod wire;
