#![no_main]

#[expect(dead_code, reason = "the other target runs the rest")]
#[path = "../bodies.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|document: &[u8]| bodies::read(document));
