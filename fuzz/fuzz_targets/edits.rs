#![no_main]

#[expect(dead_code, reason = "the other target runs the rest")]
#[path = "../bodies.rs"]
mod bodies;

use aptix_model::documents::Dialect;

// The first byte chooses the dialect; a byte 0xff, which no document has, ends the file.
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    let end = rest.iter().position(|byte| *byte == 0xff).unwrap_or(rest.len());
    let (file, document) = rest.split_at(end);
    let dialect = Dialect::ALL[usize::from(*choice) % Dialect::ALL.len()];
    bodies::edit(dialect, file, document.get(1..).unwrap_or_default());
});
