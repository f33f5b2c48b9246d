//! The model through its doors: documents in, batches out; wire in, domain out, and back.

#![cfg(test)]

mod chat;
mod chat_examples;
mod codex_patch;
mod cost;
mod cut;
mod documents;
mod events;
mod file_bundle;
mod git_patch;
mod look;
mod prepare;
mod protection;
mod questions;
mod removed_content;
mod search_patch;
mod search_replace;
mod session_mode;
mod str_replace;
mod structured_patch;
mod tools;
mod wire;
mod written;
mod wrong_shapes;
