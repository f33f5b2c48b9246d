//! Plays scenarios of tool calls over one way in.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jsonschema::Validator;
use serde_json::Value;

use super::answer::{Answer, lacking};
use super::held_commits::HeldCommits;
use super::previewed::faulty_preview;
use crate::processes::{Machine, eventually, make};
use crate::scenario_text::{Part, Scenario, document, parse, unescaped};
use crate::tree::{self, Entry, Tree, assert_same};

/// The output schemas of the tools, by their names.
type Schemas = BTreeMap<String, Validator>;

/// A call of a tool.
pub(super) struct Call<'a> {
    /// The name of the caller.
    pub(super) by: &'a str,
    pub(super) tool: &'a str,
    /// The arguments, as they are written.
    pub(super) arguments: &'a str,
}

/// Whose log it is.
#[derive(Clone, Copy)]
pub(super) enum Side {
    /// The program that writes the files.
    Client,
    Server,
}

/// A way by which tools are called.
pub(super) trait WayIn {
    /// What it is called in reports.
    fn name(&self) -> &'static str;

    /// The machine with the project.
    fn machine(&self) -> &Machine;

    /// The name of the log of one side.
    fn log(&self, side: Side) -> &'static str;

    /// Makes the callers of what follows other ones than before.
    fn begin(&mut self);

    /// Calls a tool without waiting for the answer. Returns the id of the process that applies batches for the caller.
    fn send(&mut self, call: &Call<'_>) -> u32;

    /// Waits for the answer to a call; 0 for the earliest of which it was not waited for, 1 for the next.
    fn wait(&mut self, call: usize) -> Answer;

    /// The definitions of all tools, as models are shown them.
    fn tools(&mut self) -> Vec<Value>;

    /// The guide for authors.
    fn guide(&mut self) -> String;

    /// Asks for a mode of the session of a caller.
    fn set_mode(&mut self, by: &str, mode: &str);

    /// Lets this many seconds pass for plans.
    fn pass(&mut self, seconds: u64);

    /// How far the times in its answers are ahead of the time of day.
    fn ahead(&self) -> Duration;
}

/// Plays every scenario over each way, and reports all that fail.
pub(super) fn play_all(ways: &mut [&mut dyn WayIn], text: &str) {
    let cases: Vec<_> = parse(text).iter().flat_map(cases).collect();
    let mut failed = Vec::new();
    for way in ways {
        let schemas = output_schemas(&way.tools());
        for case in &cases {
            let name = format!("{}, over {}", case.title, way.name());
            if catch_unwind(AssertUnwindSafe(|| Play::begin(*way, &schemas, &name).run(case))).is_err() {
                failed.push(name);
            }
        }
    }
    assert!(failed.is_empty(), "failed:\n{}", failed.join("\n"));
}

/// The schema of the answers that each tool is listed with.
fn output_schemas(tools: &[Value]) -> Schemas {
    let schema = |tool: &Value| jsonschema::validator_for(&tool["outputSchema"]).unwrap();
    tools.iter().map(|tool| (tool["name"].as_str().unwrap().to_owned(), schema(tool))).collect()
}

fn cases(scenario: &Scenario) -> Vec<Scenario> {
    let Some(table) = scenario.parts.iter().find(|part| part.word == "cases") else { return vec![scenario.clone()] };
    let case = |line: &str| {
        let texts = (1..).map(|number| format!("${number}")).zip(line.split(" => ")).collect::<Vec<_>>();
        let fill = |text: &str| texts.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
        let parts = scenario.parts.iter().filter(|part| part.word != "cases");
        let parts = parts.map(|part| Part { rest: fill(&part.rest), body: fill(&part.body), ..part.clone() });
        Scenario { title: format!("{} [{line:.80}]", scenario.title), parts: parts.collect() }
    };
    table.body.lines().filter(|line| !line.is_empty()).map(case).collect()
}

/// A scenario that is being played.
struct Play<'a> {
    way: &'a mut dyn WayIn,
    schemas: &'a Schemas,
    name: &'a str,
    project: PathBuf,
    /// What the project should be.
    expected: Tree,
    /// What `$NAME` stands for.
    kept: BTreeMap<String, String>,
    /// Keeps batches from being committed while it is there.
    held: Option<HeldCommits>,
    /// The tools that were called, of which no answer was heard yet.
    sent: VecDeque<String>,
    /// The processes that they were sent to.
    processes: BTreeSet<u32>,
    /// Whether a call named a directory above the project, as its answer may do then.
    names_above: bool,
    answer: Option<Answer>,
}

impl<'a> Play<'a> {
    #[expect(clippy::disallowed_methods, reason = "a test's own files")]
    fn begin(way: &'a mut dyn WayIn, schemas: &'a Schemas, name: &'a str) -> Self {
        way.begin();
        way.machine().set_policy("");
        let project = way.machine().path("project");
        // The directory itself stays: it is held open by those who serve it.
        for entry in fs::read_dir(&project).unwrap() {
            let entry = entry.unwrap();
            let remove = if entry.file_type().unwrap().is_dir() { fs::remove_dir_all } else { fs::remove_file };
            remove(entry.path()).unwrap();
        }
        let kept = [("$project".to_owned(), project.canonicalize().unwrap().to_str().unwrap().to_owned())].into();
        Self {
            way,
            schemas,
            name,
            project,
            expected: Tree::new(),
            kept,
            held: None,
            sent: VecDeque::new(),
            processes: BTreeSet::new(),
            names_above: false,
            answer: None,
        }
    }

    fn run(mut self, scenario: &Scenario) {
        let mut only = "";
        for part in &scenario.parts {
            match part.word.as_str() {
                "only" => only = &part.rest,
                _ if only.is_empty() || only == self.way.name() => self.step(part),
                _ => {}
            }
        }
        self.check_tree();
    }

    fn step(&mut self, part: &Part) {
        match part.word.as_str() {
            "file" | "dir" | "link" | "policy" => {
                self.check_tree();
                self.lay_out(part);
            }
            "call" => {
                self.check_tree();
                self.send(part);
                self.hear(self.sent.len() - 1);
            }
            "hold" => self.held = Some(HeldCommits::of(self.way.machine())),
            "send" => {
                let process = self.send(part);
                self.held.as_ref().unwrap().wait_for(1, &[process].into());
                self.processes.insert(process);
            }
            "waiting" => self.held.as_ref().unwrap().wait_for(part.rest.parse().unwrap(), &self.processes),
            "release" => self.held = None,
            "heard" => self.hear(0),
            "mode" => {
                let (by, mode) = part.rest.split_once(' ').unwrap();
                self.way.set_mode(by, mode);
            }
            "later" => self.way.pass(part.rest.parse().unwrap()),
            "tool" => {
                let tools = self.way.tools();
                let tool = tools.iter().find(|tool| tool["name"] == part.rest.as_str()).unwrap();
                self.check_like(tool, &part.body);
            }
            "guide" => {
                let guide = self.way.guide();
                for line in part.body.lines() {
                    assert!(guide.contains(line), "{}: no {line:?} in\n{guide}", self.name);
                }
            }
            "done" => self.check_answer("", &part.body),
            "refused" => self.check_answer(&part.rest, &part.body),
            "text" | "silent" => {
                let answer = self.answer.as_ref().unwrap();
                for line in self.filled(&part.body).lines() {
                    let is_there = answer.text.contains(line);
                    assert_eq!(is_there, part.word == "text", "{}: {line:?} in\n{}", self.name, answer.text);
                }
            }
            "keep" => {
                let (name, keys) = part.rest.split_once(" = ").unwrap();
                let structured = &self.answer.as_ref().unwrap().structured;
                let value = structured.pointer(&format!("/{}", keys.replace('.', "/")));
                let value = value.and_then(Value::as_str).unwrap_or_else(|| panic!("{}: {structured:#}", self.name));
                self.kept.insert(format!("${name}"), value.to_owned());
            }
            "logged" => self.check_log(part),
            "after" => self.expect(part),
            "absent" => assert!(!self.project.join(&part.rest).exists(), "{}: {}", self.name, part.rest),
            other => panic!("{}: unknown part {other:?}", self.name),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a test's own files")]
    fn lay_out(&mut self, part: &Part) {
        if part.word == "policy" {
            return self.way.machine().set_policy(&part.body);
        }
        let (path, rest) = part.rest.split_once(' ').unwrap_or((&part.rest, ""));
        let place = self.project.join(path);
        make(place.parent().unwrap());
        match (part.word.as_str(), rest.strip_prefix("-> "), rest.strip_prefix("mode=")) {
            ("file", ..) => fs::write(place, unescaped(&self.filled(&part.body))).unwrap(),
            ("link", Some(target), _) => symlink(target, place).unwrap(),
            (_, _, Some(mode)) => {
                make(&place);
                fs::set_permissions(place, fs::Permissions::from_mode(u32::from_str_radix(mode, 8).unwrap())).unwrap();
            }
            _ => panic!("{}: {} {}", self.name, part.word, part.rest),
        }
        self.expected = found(&self.project);
    }

    fn expect(&mut self, part: &Part) {
        if let Some(path) = part.rest.strip_suffix(" gone") {
            assert!(self.expected.remove(path).is_some(), "{}: {path} was not there", self.name);
            return;
        }
        for parent in Path::new(&part.rest).ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
            self.expected.entry(parent.to_str().unwrap().to_owned()).or_insert(Entry::Dir { mode: 0 });
        }
        self.expected.insert(part.rest.clone(), Entry::File { mode: 0, bytes: unescaped(&self.filled(&part.body)) });
    }

    fn check_tree(&self) {
        assert_same(&found(&self.project), &self.expected, self.name);
    }

    /// Holds what a tool answered, a refusal too, against the schema that the tool is listed with.
    fn check_schema(&self, tool: &str, answer: &Answer) {
        let Some(schema) = self.schemas.get(tool).filter(|_| answer.is_of_tool) else {
            assert!(answer.is_error, "{}: {tool} is not listed, and answers {}", self.name, answer.text);
            return;
        };
        let errors: Vec<_> = schema.iter_errors(&answer.structured).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {tool}: {errors:?} in {:#}", self.name, answer.structured);
    }

    /// Compares the last answer with the code of its refusal, none for success, and with a part of it.
    fn check_answer(&self, code: &str, expected: &str) {
        let answer = self.answer.as_ref().unwrap();
        let shown = format!("{}\n{:#}", self.name, answer.structured);
        let found = if answer.is_error { answer.code() } else { String::new() };
        assert_eq!((answer.is_error, found.as_str()), (!code.is_empty(), code), "{shown}");
        if !expected.is_empty() {
            self.check_like(&answer.structured, expected);
        }
    }

    fn check_like(&self, found: &Value, expected: &str) {
        let expected = self.filled(expected);
        let expected = serde_json::from_str(&expected).unwrap_or_else(|error| panic!("{error} in {expected}"));
        if let Some(lack) = lacking(found, &expected, "answer") {
            panic!("{lack}: {}\n{found:#}", self.name);
        }
    }

    /// Sends a call, and returns the id of the process that applies its batch.
    fn send(&mut self, part: &Part) -> u32 {
        let (tool, by) = part.rest.split_once(" by ").unwrap_or((&part.rest, "ann"));
        self.names_above = part.body.contains("$project");
        let arguments = self.filled(&part.body);
        self.sent.push_back(tool.to_owned());
        self.way.send(&Call { by, tool, arguments: &arguments })
    }

    /// Waits for the answer to a call, by its position among those that were sent.
    fn hear(&mut self, call: usize) {
        let answer = self.way.wait(call);
        let tool = self.sent.remove(call).unwrap();
        self.check_schema(&tool, &answer);
        let above = self.way.machine().path("").to_str().unwrap().trim_end_matches('/').to_owned();
        let is_named = answer.text.contains(&above) || answer.structured.to_string().contains(&above);
        let may_name = !is_named || self.names_above;
        assert!(may_name, "{}: it names a directory above the project: {}", self.name, answer.text);
        if let Some(fault) = faulty_preview(&answer, self.way.ahead()) {
            panic!("{}: {fault}:\n{}\n{:#}", self.name, answer.text, answer.structured);
        }
        self.answer = Some(answer);
    }

    /// Waits until what is described has been logged, one event a line.
    fn check_log(&self, part: &Part) {
        let side = if part.rest == "server" { Side::Server } else { Side::Client };
        let log = self.way.log(side);
        for line in self.filled(&part.body).lines() {
            let expected: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
            let is_it = |line: &str| {
                serde_json::from_str(line).is_ok_and(|event: Value| lacking(&event, &expected, "event").is_none())
            };
            let is_logged = || self.way.machine().logged(log).lines().any(is_it);
            eventually(&format!("{}: {log} has {line}", self.name), is_logged);
        }
    }

    /// A text with what it only describes.
    fn filled(&self, text: &str) -> String {
        let text = self.kept.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
        String::from_utf8(document(&text, &self.project)).unwrap()
    }
}

/// What is in a project, but for the modes, which depend on who runs the tests.
fn found(project: &Path) -> Tree {
    let mut found = tree::read(project);
    for entry in found.values_mut() {
        if let Entry::File { mode, .. } | Entry::Dir { mode } = entry {
            *mode = 0;
        }
    }
    found
}
