//! Reads the corpus: trees, answers and what a reader of the whole answer expects. README.md states the format.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use aptix_engine::digest::sha256;

use crate::tree::{Entry, PLAIN, Tree};

/// One answer and its expected outcome.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) title: String,
    /// File of the corpus and line of the title.
    pub(crate) place: String,
    pub(crate) before: Tree,
    /// The text that is sent.
    pub(crate) answer: String,
    pub(crate) expected: Expected,
    /// Whether the answer may change files again when it is sent a second time.
    pub(crate) is_repeatable: bool,
    /// Whether a reader knows which change is wanted, although the rules refuse it.
    pub(crate) is_clear: bool,
    /// Texts that errors and warnings must contain, all of them.
    pub(crate) words: Vec<String>,
    /// Codes of warnings that must be there.
    pub(crate) warnings: Vec<String>,
    /// The label that the history must show.
    pub(crate) label: Option<String>,
}

/// The outcome that a reader of the whole answer expects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    /// The tree is this one afterwards.
    Applied(Tree),
    /// Nothing changes; with the reason's code, if the case states one.
    Refused(Option<String>),
}

/// Reads every `*.txt` of a folder, in the order of their names; `trees.txt` comes first.
pub(crate) fn read(folder: &Path) -> Result<Vec<Case>> {
    let listed = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut files: Vec<_> = listed.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "txt"));
    files.sort_by_key(|file| (!file.ends_with("trees.txt"), file.clone()));
    let mut corpus = Corpus::default();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        corpus.add(&name, &text).with_context(|| name.clone())?;
    }
    Ok(corpus.cases)
}

#[derive(Default)]
struct Corpus {
    trees: BTreeMap<String, Tree>,
    cases: Vec<Case>,
}

/// A directive and the lines below it.
struct Section<'a> {
    line: usize,
    name: &'a str,
    argument: &'a str,
    text: String,
}

fn sections(text: &str) -> Result<Vec<Section<'_>>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if let Some(directive) = line.strip_prefix("%% ") {
            let directive = directive.trim_end();
            let (name, argument) = directive.split_once(' ').unwrap_or((directive, ""));
            sections.push(Section { line: index + 1, name, argument, text: String::new() });
        } else {
            let section = sections.last_mut().context("the file begins with no directive")?;
            section.text.push_str(line);
        }
    }
    Ok(sections)
}

/// A case while it is read.
struct Draft {
    case: Case,
    /// `after` and `mode` lines.
    after: Vec<After>,
    outcome: Option<Outcome>,
    is_crlf: bool,
}

enum After {
    File(String, Option<Vec<u8>>),
    Mode(String, u32),
}

#[derive(PartialEq, Eq)]
enum Outcome {
    Applied,
    Refused(Option<String>),
}

impl Corpus {
    fn add(&mut self, file: &str, text: &str) -> Result<()> {
        let mut tree: Option<String> = None;
        let mut draft: Option<Draft> = None;
        for section in sections(text)? {
            let at = || format!("line {}: %% {} {}", section.line, section.name, section.argument);
            match section.name {
                "tree" => tree = Some(section.argument.to_owned()),
                "case" => {
                    if let Some(draft) = draft.take() {
                        self.finish(draft)?;
                    }
                    ensure!(
                        self.cases.iter().all(|case| case.title != section.argument),
                        "{}: another case has this title",
                        at()
                    );
                    draft = Some(Draft::new(section.argument, format!("{file}:{}", section.line)));
                }
                "file" if draft.is_none() => {
                    let tree = tree.clone().with_context(at)?;
                    let (path, bytes) = content(&section).with_context(at)?;
                    self.trees.entry(tree).or_default().files.insert(path, Entry::plain(bytes.with_context(at)?));
                }
                _ => draft.as_mut().with_context(at)?.add(&section, &self.trees).with_context(at)?,
            }
        }
        draft.map_or(Ok(()), |draft| self.finish(draft))
    }

    fn finish(&mut self, draft: Draft) -> Result<()> {
        let title = draft.case.title.clone();
        self.cases.push(draft.finish().with_context(|| format!("case {title:?}"))?);
        Ok(())
    }
}

impl Draft {
    fn new(title: &str, place: String) -> Self {
        let case = Case {
            title: title.to_owned(),
            place,
            before: Tree::default(),
            answer: String::new(),
            expected: Expected::Refused(None),
            is_repeatable: false,
            is_clear: false,
            words: Vec::new(),
            warnings: Vec::new(),
            label: None,
        };
        Self { case, after: Vec::new(), outcome: None, is_crlf: false }
    }

    fn add(&mut self, section: &Section<'_>, trees: &BTreeMap<String, Tree>) -> Result<()> {
        let argument = section.argument.to_owned();
        match section.name {
            "on" => self.case.before = trees.get(&argument).context("no tree has this name")?.clone(),
            "file" => {
                let (path, bytes) = content(section)?;
                self.case.before.files.insert(path, Entry::plain(bytes.context("a file has a content")?));
            }
            "answer" => {
                let text = section.text.as_str();
                let is_open = argument == "no-newline";
                self.case.answer = if is_open { text.strip_suffix('\n').unwrap_or(text) } else { text }.to_owned();
            }
            "crlf" => self.is_crlf = true,
            "repeatable" => self.case.is_repeatable = true,
            "clear" => self.case.is_clear = true,
            "words" => self.case.words.push(argument),
            "warning" => self.case.warnings.push(argument),
            "label" => self.case.label = Some(argument.replace("\\n", "\n")),
            "after" => {
                let (path, bytes) = content(section)?;
                self.after.push(After::File(path, bytes));
            }
            "mode" => {
                let (path, mode) = argument.split_once(' ').context("expected a path and a mode")?;
                self.after.push(After::Mode(path.to_owned(), u32::from_str_radix(mode, 8)?));
            }
            "expect" => {
                let (outcome, code) = argument.split_once(' ').unwrap_or((&argument, ""));
                self.outcome = Some(match outcome {
                    "applied" => Outcome::Applied,
                    "refused" => Outcome::Refused(Some(code.to_owned()).filter(|code| !code.is_empty())),
                    _ => bail!("expected applied or refused"),
                });
            }
            _ => bail!("no directive has this name"),
        }
        let has_text = matches!(section.name, "file" | "answer" | "after");
        ensure!(has_text || section.text.trim().is_empty(), "this directive takes no text");
        Ok(())
    }

    fn finish(self) -> Result<Case> {
        let Self { mut case, after, outcome, is_crlf } = self;
        for (path, entry) in &case.before.files {
            let digest = sha256(&entry.bytes).to_string();
            case.answer = case.answer.replace(&format!("{{{{sha {path}}}}}"), &digest);
        }
        ensure!(!case.answer.contains("{{sha "), "the answer names the digest of a file that is not there");
        if is_crlf {
            case.answer = case.answer.replace('\n', "\r\n");
        }
        case.expected = match outcome.context("the case expects nothing")? {
            Outcome::Refused(code) => {
                ensure!(after.is_empty(), "a refused answer changes no file");
                Expected::Refused(code)
            }
            Outcome::Applied => {
                let mut tree = case.before.clone();
                ensure!(!after.is_empty(), "an applied answer states what changes");
                for after in after {
                    match after {
                        After::File(path, None) => {
                            tree.files.remove(&path).context("a file that goes was there")?;
                        }
                        After::File(path, Some(bytes)) => {
                            let mode = tree.files.get(&path).map_or(PLAIN, |entry| entry.mode);
                            tree.files.insert(path, Entry { bytes, mode });
                        }
                        After::Mode(path, mode) => {
                            tree.files.get_mut(&path).context("a mode is of a file that is there")?.mode = mode;
                        }
                    }
                }
                Expected::Applied(tree)
            }
        };
        Ok(case)
    }
}

/// The path of a `file` or `after` section and the file's bytes; none when it is gone.
fn content(section: &Section<'_>) -> Result<(String, Option<Vec<u8>>)> {
    let (mut path, mut text) = (section.argument, section.text.clone());
    while let Some((rest, flag)) = path.rsplit_once(' ') {
        match flag {
            "gone" => {
                ensure!(text.is_empty(), "a file that is gone has no content");
                return Ok((rest.to_owned(), None));
            }
            "no-newline" => drop(text.pop()),
            "crlf" => text = text.replace('\n', "\r\n"),
            "bom" => text.insert(0, '\u{feff}'),
            _ => break,
        }
        path = rest;
    }
    Ok((path.to_owned(), Some(text.into_bytes())))
}
