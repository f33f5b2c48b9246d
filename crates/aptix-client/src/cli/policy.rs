//! `aptix policy`: whether the policy files can be followed, and what they say about a file.

use aptix_model::batch::{
    Batch, Content, FileEdit, FilePatch, Presence, Replacement, Replacements, Scope, Target, WriteFile,
};
use aptix_model::failure::{Failure, Visible};
use aptix_model::live::FileSelector;
use aptix_model::path::WorkspacePath;
use aptix_model::reason::Reason;
use serde::Serialize;

use crate::apply::proposal::{Decision, Need};
use crate::apply::{ApplyOptions, Mode, Refusal, apply};
use crate::live::read;
use crate::policy::Policy;
use crate::policy::caller::Caller;
use crate::policy::files::PolicyFiles;
use crate::workspace::fs::disk::SystemDisk;
use crate::workspace::roots::root::RootSpec;
use crate::workspace::roots::workspace::Workspace;

use super::exit::{Exit, Refused};
use super::home_dirs::HomeDirs;
use super::output::{self, Form};

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    question: Question,
}

#[derive(clap::Subcommand, Debug)]
enum Question {
    /// Tell of each policy file whether it can be followed
    Check(Place),
    /// Tell what the policy means for a file: who may change it, who is asked, who may read it
    Explain {
        #[command(flatten)]
        place: Place,
        /// The file, by its path in the root; it need not exist
        #[arg(value_name = "PATH")]
        path: String,
    },
}

/// The workspace that is asked about.
#[derive(clap::Args, Debug)]
struct Place {
    /// A directory of the workspace; may be repeated
    #[arg(long = "root", value_name = "[NAME=]DIR", default_value = ".")]
    roots: Vec<RootSpec>,
    #[command(flatten)]
    form: Form,
}

impl Args {
    const fn place(&self) -> &Place {
        match &self.question {
            Question::Check(place) | Question::Explain { place, .. } => place,
        }
    }

    pub(super) fn roots(&self) -> &[RootSpec] {
        &self.place().roots
    }
}

pub(super) fn run(args: &Args, homes: &HomeDirs) -> anyhow::Result<Exit> {
    let form = args.place().form;
    let (config_home, state_home) = (homes.config_home()?, homes.state_home()?);
    let policies = |caller| PolicyFiles::new(&config_home, caller);
    let workspace = match Workspace::open_to_look(args.roots(), &state_home, Box::new(SystemDisk)) {
        Ok(workspace) => workspace,
        Err(error) => return Ok(output::show_refused(form, &error.into())),
    };
    Ok(match &args.question {
        Question::Check(_) => check(form, &policies(Caller::Shell), &workspace),
        Question::Explain { path, .. } => match explain(&workspace, path, policies) {
            Ok(explained) if form.json => output::print_object(&explained),
            Ok(explained) => output::print(&explained.text()),
            Err(refused) => output::show_refused(form, &refused),
        },
    })
}

/// What is told about the policy files.
#[derive(Serialize)]
struct Checked {
    success: bool,
    files: Vec<CheckedFile>,
}

#[derive(Serialize)]
struct CheckedFile {
    path: String,
    /// `ok`, `absent` or `unusable`
    state: &'static str,
    message: Option<String>,
    hint: Option<String>,
}

fn check(form: Form, policies: &PolicyFiles, workspace: &Workspace) -> Exit {
    let files = policies.look(workspace).into_iter().map(|(path, found)| {
        let (state, message, hint) = match found {
            Ok(true) => ("ok", None, None),
            Ok(false) => ("absent", None, None),
            Err(error) => ("unusable", Some(error.source.to_string()), error.failure().hint),
        };
        CheckedFile { path: path.display().to_string(), state, message, hint }
    });
    let files: Vec<_> = files.collect();
    let success = files.iter().all(|file| file.message.is_none());
    let printed = if form.json {
        output::print_object(&Checked { success, files })
    } else {
        let lines = files.iter().map(|CheckedFile { path, state, message, hint }| {
            let path = Visible(path);
            match (message, hint) {
                (Some(message), Some(hint)) => format!("{path}: {}\n  hint: {}\n", Visible(message), Visible(hint)),
                (Some(message), None) => format!("{path}: {}\n", Visible(message)),
                (None, _) if *state == "absent" => format!("{path}: is not there\n"),
                (None, _) => format!("{path}: ok\n"),
            }
        });
        output::print(&lines.collect::<String>())
    };
    if success { printed } else { Exit::Refused }
}

/// What the policy says about a file.
#[derive(Serialize)]
struct Explained {
    path: String,
    /// What becomes of an edit of it, by who sends it.
    writes: [Answer; 3],
    /// Whether it is shown, by who asks for it.
    reads: [Answer; 2],
}

#[derive(Serialize)]
struct Answer {
    caller: &'static str,
    /// Of an edit `yes`, `usual`, `asked` or `no`; of a look `yes`, `absent` or `no`
    answer: &'static str,
    why: Option<String>,
}

impl Explained {
    fn text(&self) -> String {
        let line = |doing: &str, Answer { caller, answer, why }: &Answer| {
            let why = why.as_ref().map(|why| format!(": {}", Visible(why))).unwrap_or_default();
            format!("  {:<26}{}{why}\n", format!("{doing} {caller}"), words(answer))
        };
        let reads = self.reads.iter().map(|read| match read.answer {
            "yes" => format!("  {:<26}yes\n", format!("read by {}", read.caller)),
            "absent" => format!("  {:<26}it is not there\n", format!("read by {}", read.caller)),
            _ => line("read by", read),
        });
        let writes = self.writes.iter().map(|write| line("written by", write));
        format!("{}\n{}", Visible(&self.path), writes.chain(reads).collect::<String>())
    }
}

/// An answer about an edit, for people.
fn words(answer: &str) -> &str {
    match answer {
        "yes" => "yes, and nobody is asked",
        "usual" => "yes; a person is asked only where every batch is asked about",
        "asked" => "a person is asked, and where none can be it is refused",
        other => other,
    }
}

/// Who an answer is about, and what they are called.
const CALLERS: [(Caller, &str); 3] =
    [(Caller::Shell, "aptix apply"), (Caller::Model, "aptix mcp"), (Caller::Server, "a server")];

fn explain(workspace: &Workspace, path: &str, policies: impl Fn(Caller) -> PolicyFiles) -> Result<Explained, Refused> {
    let policy = |caller| policies(caller).read(workspace).map_err(|error| error.failure());
    let [shell, model, server] = CALLERS;
    let write = |(caller, name)| write(workspace, &*policy(caller)?, name, path);
    let read = |(caller, name)| Ok::<_, Failure>(shown(workspace, &*policy(caller)?, name, path));
    Ok(Explained {
        path: path.to_owned(),
        writes: [write(shell)?, write(model)?, write(server)?],
        reads: [read(model)?, read(server)?],
    })
}

/// What would become of a batch that adds a line to the file, or makes it; and of one that gives it a whole new content, where that is
/// something else.
fn write(workspace: &Workspace, policy: &Policy, caller: &'static str, path: &str) -> Result<Answer, Refused> {
    let text = "a line that `aptix policy explain` asks about\n".to_owned();
    let step = Replacement { find: String::new(), replace: text.clone(), scope: Scope::Block { start_line: None } };
    let edited = meets(workspace, policy, path, FileEdit::Replacements(Replacements { steps: vec![step] }))?;
    let whole = WriteFile { content: Content::Text(text), presence: Presence::Either, content_format: None };
    let whole = meets(workspace, policy, path, FileEdit::WriteFile(whole))?;
    let (answer, mut why) = edited.clone();
    if whole.0 != edited.0 {
        let also = format!(
            "a whole new content: {}{}",
            words(whole.0),
            whole.1.map(|why| format!(", {why}")).unwrap_or_default()
        );
        why = Some(why.map_or_else(|| also.clone(), |why| format!("{why}; {also}")));
    }
    Ok(Answer { caller, answer, why })
}

/// What one edit of the file would meet, and why.
fn meets(
    workspace: &Workspace,
    policy: &Policy,
    path: &str,
    edit: FileEdit,
) -> Result<(&'static str, Option<String>), Refused> {
    let patch = FilePatch { target: Target::Path(path.to_owned()), key: None, label: None, edit };
    let batch = Batch { files: vec![patch], ..Batch::default() };
    let mut need = Need::Usual;
    let planned = apply(workspace, &batch, ApplyOptions::new(policy, Mode::DryRun), &mut |proposal| {
        need = proposal.needs.first().cloned().unwrap_or(Need::Usual);
        Decision::Apply
    });
    Ok(match (planned, need) {
        (Err(refusal), _) if refusal.is_environment() => return Err(refusal.into()),
        (Err(Refusal { failures }), _) => {
            let is_asked = failures.iter().all(|failure| failure.reason == Reason::ApprovalRequired);
            let why: Vec<_> = failures.into_iter().map(|failure| failure.message).collect();
            (if is_asked { "asked" } else { "no" }, Some(why.join("; ")))
        }
        (Ok(_), Need::Ask { ask, .. }) => ("asked", Some(ask.to_string())),
        (Ok(_), Need::Usual) => ("usual", None),
        (Ok(_), Need::Nothing) => ("yes", None),
    })
}

/// Whether a caller is shown the file.
fn shown(workspace: &Workspace, policy: &Policy, caller: &'static str, path: &str) -> Answer {
    let failure = match WorkspacePath::new(path).map(FileSelector::Path) {
        Ok(file) => read::check(workspace, policy, &file).err(),
        Err(error) => Some(Failure::new(Reason::InvalidPath, error.to_string())),
    };
    let answer = match &failure {
        None => "yes",
        Some(failure) if matches!(failure.reason, Reason::FileMissing | Reason::NotFound) => "absent",
        Some(_) => "no",
    };
    Answer { caller, answer, why: failure.map(|failure| failure.message) }
}
