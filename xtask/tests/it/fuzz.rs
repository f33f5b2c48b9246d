//! The fuzz targets on as many inputs as a test run has time for: seeds of each dialect, cut up and put together anew.

#[path = "../../../fuzz/bodies.rs"]
mod bodies;

use std::path::Path;
use std::time::Duration;

use aptix_engine::digest::sha256;
use aptix_model::documents::Dialect;
use cpu_time::ThreadTime;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};

/// Inputs for each dialect.
const CASES: u32 = 400;
/// How many times what the dearest seed costs one input may cost, whatever it is: inputs are small.
const AT_MOST: u32 = 40;

fn seeds(dialect: Dialect) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(dialect.name());
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// The file that the seeds were made for, or one like it.
fn file() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(b"a\nb\nc\na\na".to_vec()), some_file()]
}

/// Files of few different lines, so that texts are found in them, once or more often.
fn some_file() -> impl Strategy<Value = Vec<u8>> {
    let line = select(vec!["a", "b", "  b", "\tb", "c", "", "a ", "x", "\u{e9}", "aa"]);
    let end = select(vec!["\n", "\n", "\n", "\r\n", "\r", ""]);
    let mark = select(vec!["", "", "", "\u{feff}"]);
    (mark, vec((line, end), 0..12)).prop_map(|(mark, lines)| {
        let lines: String = lines.into_iter().map(|(line, end)| format!("{line}{end}")).collect();
        format!("{mark}{lines}").into_bytes()
    })
}

/// A part of a seed goes, comes twice, or gives way to another part or to a word.
#[derive(Clone, Debug)]
struct Mutation {
    from: Index,
    length: usize,
    other: Option<(Index, Index, usize)>,
    word: &'static str,
    is_twice: bool,
}

fn mutation() -> impl Strategy<Value = Mutation> {
    const WORDS: [&str; 20] = [
        "",
        "\n",
        "\r\n",
        "\"",
        "\\",
        "{",
        "}",
        "[",
        "0",
        "-1",
        "99999999999999999999",
        "null",
        "\0",
        "\u{feff}",
        "@@",
        "```",
        "=======",
        "*** End of File\n",
        "\\ No newline at end of file\n",
        "file",
    ];
    let other = prop::option::of((any::<Index>(), any::<Index>(), 0..40_usize));
    (any::<Index>(), 0..12_usize, other, select(WORDS.to_vec()), any::<bool>())
        .prop_map(|(from, length, other, word, is_twice)| Mutation { from, length, other, word, is_twice })
}

fn mutate(document: &mut Vec<u8>, seeds: &[String], mutation: &Mutation) {
    let from = mutation.from.index(document.len() + 1);
    let to = (from + mutation.length).min(document.len());
    let comes = match &mutation.other {
        Some((seed, at, length)) => {
            let seed = seed.get(seeds).as_bytes();
            let at = at.index(seed.len() + 1);
            seed[at..(at + length).min(seed.len())].to_vec()
        }
        None if mutation.is_twice => document[from..to].repeat(2),
        None => mutation.word.as_bytes().to_vec(),
    };
    document.splice(from..to, comes);
}

/// What a document costs, and whether it is an edit that can be made. Of a few tries the least, unless the first is cheap enough:
/// other programs only ever add to it.
fn cost(dialect: Dialect, file: &[u8], document: &[u8], enough: Duration) -> (Duration, bool) {
    let once = || {
        let start = ThreadTime::now();
        bodies::read(document);
        let is_done = bodies::edit(dialect, file, document);
        (start.elapsed(), is_done)
    };
    let first = once();
    if first.0 < enough { first } else { (0..4).map(|_| once()).min().unwrap_or(first).min(first) }
}

/// What the dearest of all seeds costs.
fn dearest() -> Duration {
    let costs = Dialect::ALL.into_iter().flat_map(|dialect| {
        let cost = move |seed: String| cost(dialect, b"a\nb\nc\na\na", seed.as_bytes(), Duration::ZERO).0;
        seeds(dialect).into_iter().map(cost)
    });
    costs.max().unwrap()
}

fn run(dialect: Dialect, cases: u32, most: Duration) -> u32 {
    let own = seeds(dialect);
    let all: Vec<String> = Dialect::ALL.into_iter().flat_map(seeds).collect();
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let mut done = 0;
    let inputs = (file(), any::<Index>(), vec(mutation(), 0..4));
    let outcome = runner.run(&inputs, |(file, seed, mutations)| {
        let mut document = seed.get(&own).replace("SHA", &sha256(&file).to_string()).into_bytes();
        mutations.iter().for_each(|mutation| mutate(&mut document, &all, mutation));
        let (took, is_done) = cost(dialect, &file, &document, most);
        prop_assert!(took < most, "{took:?}, at most {most:?}");
        DONE.with(|count| count.set(count.get() + u32::from(is_done)));
        Ok(())
    });
    DONE.with(|count| done += count.take());
    outcome.unwrap_or_else(|error| panic!("{dialect}: {error}"));
    done
}

thread_local! {
    static DONE: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

#[test]
fn no_document_of_any_dialect_does_harm() {
    let most = dearest() * AT_MOST;
    for dialect in Dialect::ALL {
        let done = run(dialect, CASES, most);
        assert!(done >= 4, "{dialect}: only {done} of {CASES} inputs were edits that could be made");
    }
}
