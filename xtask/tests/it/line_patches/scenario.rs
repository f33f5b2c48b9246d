//! What the scenario files expect of a run over gRPC; the client's tests describe their form.

use crate::scenario_text::Part;

/// What became of a document: why it was refused, code and detail, or nothing.
pub(crate) type Outcome = Vec<String>;

/// The text in place of `$1`, and what is expected then; of a scenario without cases one.
pub(super) fn cases(parts: &[Part]) -> Vec<(String, Outcome)> {
    let of = |word: &'static str| parts.iter().filter(move |part| part.word == word);
    let errors = || of("error").map(|error| words(&error.rest)).collect();
    let Some(table) = of("cases").next() else { return vec![(String::new(), errors())] };
    let lines = table.body.lines().filter(|line| !line.is_empty());
    let case = |line: &str| {
        let (text, expected) = line.rsplit_once(" => ").unwrap();
        let expected = if expected == "ok" { errors() } else { expected.split(" & ").map(words).collect() };
        (text.to_owned(), expected)
    };
    lines.map(case).collect()
}

/// The code and the detail of an expected error.
fn words(error: &str) -> String {
    error.split_whitespace().take_while(|word| !word.contains('=')).collect::<Vec<_>>().join(" ")
}
