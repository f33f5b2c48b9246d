//! The rules for authors, one sentence for each row of the requirements.

use crate::documents::Dialect;

/// A rule of the requirements, as it is said to authors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sentence {
    /// The id of the rule in `docs/requirements.md`.
    pub id: &'static str,
    /// Where in the guide it is.
    pub part: Part,
    /// The sentence.
    pub text: &'static str,
}

/// A part of the guide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Which kind of edit to write.
    Choice,
    /// Edits by line numbers (TUL-002).
    Lines,
    /// New files, and whole ones (TUL-004).
    NewFiles,
    /// Where a new file belongs (TUL-004 7.5, 7.6).
    Places,
    /// Structured patches and diffs (FILE-SPEC).
    Patches,
    /// File bundles (FILE-SPEC).
    Bundles,
    /// Edits that are planned first (WS-MOD).
    Plans,
}

impl Part {
    /// Every part, in the order of the guide.
    pub const ALL: [Self; 7] =
        [Self::Choice, Self::Lines, Self::NewFiles, Self::Places, Self::Patches, Self::Bundles, Self::Plans];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Choice => "Which edit to write",
            Self::Lines => "Edits by line numbers",
            Self::NewFiles => "New files and whole files",
            Self::Places => "Where a new file belongs",
            Self::Patches => "Patches",
            Self::Bundles => "File bundles",
            Self::Plans => "Edits that are planned first",
        }
    }

    /// Whether authors of this dialect need it.
    pub(super) const fn is_about(self, dialect: Dialect) -> bool {
        match self {
            Self::Choice => matches!(dialect, Dialect::Chat),
            Self::Lines => matches!(dialect, Dialect::LinePatch),
            Self::NewFiles => matches!(dialect, Dialect::CreateFile),
            Self::Places => matches!(dialect, Dialect::CreateFile | Dialect::FileBundle),
            Self::Patches => !matches!(dialect, Dialect::LinePatch | Dialect::CreateFile | Dialect::FileBundle),
            Self::Bundles => matches!(dialect, Dialect::FileBundle | Dialect::Chat),
            Self::Plans => false,
        }
    }
}

const fn say(id: &'static str, part: Part, text: &'static str) -> Sentence {
    Sentence { id, part, text }
}

/// Every sentence, in the order of the guide.
pub const SENTENCES: &[Sentence] = &[
    say("FILE-SPEC-4.0.1", Part::Choice, "Write the kind of edit that the user asked for."),
    say(
        "FILE-SPEC-4.3.1",
        Part::Choice,
        "If the user speaks of small changes or patches, write a structured patch or a git patch.",
    ),
    say("FILE-SPEC-4.3.2", Part::Choice, "If the user agrees that files are overwritten, write a file bundle."),
    say("FILE-SPEC-4.3.3", Part::Choice, "If the change is large or complex, write a file bundle."),
    say(
        "TUL-002-8.1.1",
        Part::Lines,
        "Settle first which text of a file counts: the file as it is open in the editor, before the stored copy.",
    ),
    say("TUL-002-8.1.2", Part::Lines, "Use retrieved snippets to find things, never as the text of a file."),
    say("TUL-002-8.2.1", Part::Lines, "Read the full text of each file before you edit it."),
    say("TUL-002-8.2.2", Part::Lines, "Copy the SHA-256 of exactly that text; read_file gives it."),
    say("TUL-002-8.2.3", Part::Lines, "State it as the originalSha256 of the file's patch."),
    say("TUL-002-8.2.4", Part::Lines, "Do not state the digest of a snippet or of an altered copy: it is refused."),
    say("TUL-002-8.3.1", Part::Lines, "Derive edits from the full text and the task alone."),
    say("TUL-002-8.3.2", Part::Lines, "Do not derive edits from snippets or from earlier versions of the file."),
    say("TUL-002-8.3.3", Part::Lines, "Find the smallest exact set of line edits that does the task."),
    say("TUL-002-8.4.1", Part::Lines, "Change whole lines: nothing smaller than a line can be changed."),
    say("TUL-002-8.4.2", Part::Lines, "Write a change within a line as a replace of the whole line."),
    say("TUL-002-8.4.3", Part::Lines, "Do not address a part of a line: it is refused."),
    say("TUL-002-8.5.1", Part::Lines, "Give each file one list of changes, made of insert, replace and delete."),
    say(
        "TUL-002-8.5.2",
        Part::Lines,
        "List changes from top to bottom, without overlap, each with all its fields; any other list is refused.",
    ),
    say("TUL-002-8.5.3", Part::Lines, "Describe a change where that helps the reader."),
    say("TUL-002-8.6.1", Part::Lines, "Send all file patches of a task in one call."),
    say("TUL-002-8.6.2", Part::Lines, "Every call is checked whole before anything of it is stored."),
    say("TUL-002-8.6.3", Part::Lines, "A call that passes is stored as a batch, and its parts get ids."),
    say("TUL-002-8.6.4", Part::Lines, "The batch is then handed to the workstation that has the files."),
    say("TUL-002-8.6.5", Part::Lines, "There each file's SHA-256 is compared before any file changes."),
    say("TUL-002-8.6.6", Part::Lines, "The same changes of the same file always give the same bytes, diff and report."),
    say("TUL-002-8.6.7", Part::Lines, "The new files are uploaded whole."),
    say(
        "TUL-002-8.6.8",
        Part::Lines,
        "They are what later reads of the stored copy give: read a file again before the next edit of it.",
    ),
    say("TUL-004-7.2.1", Part::NewFiles, "Use workspace_create_file for a new source file."),
    say("TUL-004-7.2.2", Part::NewFiles, "Use it for a new test file."),
    say("TUL-004-7.2.3", Part::NewFiles, "Use it for a new file of configuration, schema or documentation."),
    say(
        "TUL-004-7.2.4",
        Part::NewFiles,
        "Use it to replace a whole file at once when all of its new content is known.",
    ),
    say("TUL-004-7.3.1", Part::NewFiles, "Do not use it to edit a file in place."),
    say("TUL-004-7.3.2", Part::NewFiles, "Do not use it to append to a file."),
    say("TUL-004-7.3.3", Part::NewFiles, "Do not use it for binary content."),
    say("TUL-004-7.3.4", Part::NewFiles, "A call for a file outside of the workspace fails."),
    say(
        "TUL-004-4.2.5",
        Part::NewFiles,
        "Write every line of the content: a comment does not stand for lines left out.",
    ),
    say("TUL-004-7.4.1", Part::NewFiles, "Give all of the file: it is written in one go."),
    say(
        "TUL-004-7.4.2",
        Part::NewFiles,
        "Give the right relative path with its directories, such as src/services/login.rs.",
    ),
    say(
        "TUL-004-7.4.3",
        Part::NewFiles,
        "Set overwrite only on purpose; in doubt, ask the user whether the file is to be replaced.",
    ),
    say(
        "TUL-004-7.4.4",
        Part::NewFiles,
        "Give no absolute path outside of the workspace and no path with '..': neither passes.",
    ),
    say("TUL-004-7.4.5", Part::NewFiles, "Make edits with the patch tools."),
    say(
        "TUL-004-7.5.1",
        Part::Places,
        "Prefer a directory that is known to exist to an invented one; list_directory shows what there is.",
    ),
    say("TUL-004-7.5.2", Part::Places, "Follow the patterns that the workspace has."),
    say("TUL-004-7.5.3", Part::Places, "Put related files near each other."),
    say("TUL-004-7.5.4", Part::Places, "Introduce a new directory only when no existing one fits."),
    say("TUL-004-7.6.1", Part::Places, "If the right path is clear, call the tool without asking."),
    say("TUL-004-7.6.2", Part::Places, "If several places are plausible, ask the user one brief question first."),
    say(
        "TUL-004-7.6.3",
        Part::Places,
        "A person may be asked before the file is written; nothing is written before the answer.",
    ),
    say(
        "FILE-SPEC-4.2.1",
        Part::Patches,
        "Asked for a patch, answer with a structured patch or a git patch, as the user asked.",
    ),
    say("FILE-SPEC-4.2.2", Part::Patches, "Do not give the full content of a file in it."),
    say("FILE-SPEC-4.2.3", Part::Patches, "Aim for small, exact edits."),
    say("FILE-SPEC-2.4.1", Part::Patches, "Do not rewrite whole files."),
    say("FILE-SPEC-2.4.2", Part::Patches, "Keep to the fewest find and replace operations."),
    say("FILE-SPEC-2.4.3.1", Part::Patches, "Make each find identify its place uniquely."),
    say(
        "FILE-SPEC-2.4.3.2",
        Part::Patches,
        "A find that fits several places takes the first one, and the answer names the others.",
    ),
    say("FILE-SPEC-2.4.3.3", Part::Patches, "A policy of the workspace may refuse such a find."),
    say(
        "FILE-SPEC-2.4.4",
        Part::Patches,
        "In doubt, answer: A patch cannot be safely generated with the information provided.",
    ),
    say("FILE-SPEC-2.4.5", Part::Patches, "Give no patch with that answer."),
    say(
        "FILE-SPEC-6.1.1",
        Part::Patches,
        "When no safe patch is possible, say so and propose a file bundle: Please allow a full Aptix file bundle instead.",
    ),
    say("FILE-SPEC-6.1.2", Part::Patches, "Do not send a partial or guessed patch."),
    say(
        "FILE-SPEC-6.2.1",
        Part::Patches,
        "When no safe git patch is possible, say: Unable to generate a safe Git patch; fallback to Aptix file bundle or structured patch.",
    ),
    say(
        "FILE-SPEC-4.1.1",
        Part::Bundles,
        "Asked for a file bundle, answer with a single json block that holds a valid bundle.",
    ),
    say("FILE-SPEC-4.1.2", Part::Bundles, "A bundle may hold several files."),
    say("FILE-SPEC-4.1.3", Part::Bundles, "It may replace whole files."),
    say("FILE-SPEC-4.1.4", Part::Bundles, "Do not aim for small edits in it unless the user asks for that."),
    say(
        "WS-MOD-3.1.1",
        Part::Plans,
        "Prepare an edit and apply it in two separate messages: the calls of one message run in parallel and do not see each other's results.",
    ),
    say(
        "WS-MOD-4.2.14",
        Part::Plans,
        "Leave optional arguments out; only where your provider requires every argument, give an empty text, 0 or null for one that you do not mean.",
    ),
];
