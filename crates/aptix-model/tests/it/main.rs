//! The model through its doors: documents in, batches out; wire in, domain out, and back.

#[cfg(test)]
mod chat;
mod chat_examples;
#[cfg(test)]
mod codex_patch;
#[cfg(test)]
mod cut;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod events;
#[cfg(test)]
mod file_bundle;
#[cfg(test)]
mod git_patch;
#[cfg(test)]
mod look;
#[cfg(test)]
mod prepare;
#[cfg(test)]
mod protection;
#[cfg(test)]
mod search_patch;
#[cfg(test)]
mod search_replace;
#[cfg(test)]
mod str_replace;
#[cfg(test)]
mod structured_patch;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod wire;
