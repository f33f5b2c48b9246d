//! Prints `docs/errors.md`, the reference of failures, from the catalogue. `cargo xtask codegen` runs it.

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use aptix_model::reason::{Detail, Reason};

fn main() {
    println!(
        "# Failures\n\n\
         Whatever Aptix refuses, and whatever fails, carries one *reason* and often a finer word, its *detail*. Both are\n\
         published: a word is never renamed and never means anything else. New words are added, so accept words you do\n\
         not know. A message says what was expected and what was found; a hint says what to do next.\n\n\
         Where to find them: `errors[].code` and `errors[].detail` in the output of `--json`; `Failure.reason` and\n\
         `Failure.detail` in a report; `google.rpc.ErrorInfo.reason` and its metadata `detail` in a refused call.\n\n\
         This page is written by `cargo xtask codegen`.\n"
    );
    table("Reasons", Reason::ALL.iter().map(|reason| (reason.code(), reason.meaning())));
    println!();
    table("Details", Detail::ALL.iter().map(|detail| (detail.code(), detail.meaning())));
}

fn table(title: &str, words: impl Iterator<Item = (&'static str, &'static str)>) {
    println!("## {title}\n\n| word | meaning |\n| --- | --- |");
    for (code, meaning) in words {
        println!("| `{code}` | {} |", meaning.trim().replace('|', "\\|"));
    }
}
