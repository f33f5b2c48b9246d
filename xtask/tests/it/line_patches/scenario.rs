//! The form of the scenario files, as far as a run over gRPC needs it; the client's tests describe all of it.

/// A part of a scenario: its word, what follows on that line, and the lines below.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) word: String,
    pub(super) rest: String,
    pub(super) body: String,
}

/// What became of a document: why it was refused, code and detail, or nothing.
pub(crate) type Outcome = Vec<String>;

pub(super) fn scenarios(text: &str) -> impl Iterator<Item = (String, Vec<Part>)> {
    // The machine's only root has this name.
    let text = text.replace("ws/", "project/");
    let scenarios: Vec<_> = text.split("\n== ").skip(1).map(scenario).collect();
    scenarios.into_iter()
}

fn scenario(text: &str) -> (String, Vec<Part>) {
    let (title, text) = text.split_once('\n').unwrap();
    let part = |part: &str| {
        let (head, body) = part.split_once('\n').unwrap_or((part, ""));
        let (word, rest) = head.split_once(' ').unwrap_or((head, ""));
        Part { word: word.to_owned(), rest: rest.to_owned(), body: body.to_owned() }
    };
    let text = format!("{}\n", text.trim_end_matches('\n'));
    let body = text.strip_prefix("--- ").unwrap_or_else(|| panic!("{title} begins with a part"));
    let mut parts: Vec<_> = body.split("\n--- ").map(part).collect();
    let last = parts.len() - 1;
    for part in parts.iter_mut().take(last).filter(|part| !part.body.is_empty()) {
        part.body.push('\n');
    }
    (title.to_owned(), parts)
}

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
