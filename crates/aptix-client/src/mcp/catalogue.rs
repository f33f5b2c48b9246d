//! The tools there are, as a model is told of them: names, what they do, and the schemas of what goes in and comes out
//! (TUL-002, TUL-004 4 and 7.1, PATCH-tool, WS-MOD).

use serde_json::{Map, Value};

use super::schema;

/// Every tool's category (TUL-004 4.1).
pub const CATEGORY: &str = "workspace";
/// Where every tool is executed (TUL-004 4.1).
pub const EXECUTION_LOCATION: &str = "client";

/// A tool.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// What it is called by.
    pub name: &'static str,
    /// What it is for, what goes in, what it does, what comes out.
    pub description: &'static str,
    /// What it does to files.
    pub effect: Effect,
    input: fn() -> Map<String, Value>,
    output: fn() -> Map<String, Value>,
}

impl Tool {
    /// The schema of its arguments.
    #[must_use]
    pub fn input_schema(&self) -> Map<String, Value> {
        (self.input)()
    }

    /// The schema of its structured answer.
    #[must_use]
    pub fn output_schema(&self) -> Map<String, Value> {
        (self.output)()
    }
}

/// What a tool does to files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing.
    Reads,
    /// Nothing yet: it keeps what would be done.
    Prepares,
    /// It changes them.
    Writes,
}

/// What every tool of the prepare-first family says (WS-MOD 2.1, 3.1).
macro_rules! apart {
    () => {
        "\n\nOrder: calls of one message run in parallel and do not see each other's results. Never mix preparing \
         (prepare_file_*) and applying (apply_file_modification) in one message: prepare, read the answer, and apply \
         in the next message."
    };
}

/// What goes into a tool that puts lines beside an anchor.
macro_rules! anchored {
    () => {
        "\n\nInputs: path, anchor, content, match (how the anchor is compared with a line: contains, the default, equals \
         or regex), occurrence (which of several lines that fit: a number from 1, or last; empty or 0: the anchor fits \
         one line, or the call is refused with the lines that fit), existing_hunk_id (a plan of yours that this one \
         replaces; empty: a new one)."
    };
}

/// What the answer of every prepare tool is.
macro_rules! planned {
    () => {
        "\n\nOutput: a YAML summary with hunk_id, expires_at_ms (one hour), the lines of the place (evidence), \
         normalized.* flags and a style_warning about blank lines where there is one; and the unified diff. Nothing is \
         written until apply_file_modification gets that hunk_id."
    };
}

/// Every tool there is.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "workspace_write_patch",
        description: "Edit one or more files by line numbers, all of them or none.\n\n\
            Inputs: files[], each with docPath (the workspace root's name, then the path, lower-case; read_file gives \
            it), originalSha256 (SHA-256 of the whole file as it is now; read_file gives it) and changes[]: insert \
            (afterLine, newLines; 0 is the top), replace (startLine, endLine, expectedOriginalLines, newLines), delete \
            (startLine, endLine, expectedOriginalLines). Whole lines only, without their terminators. Line numbers are \
            those of the original file; changes go from top to bottom and do not overlap; each file is named once.\n\n\
            Behavior: refused as a whole if the digest or an expected line differs, with the file's real lines, its \
            current digest and, where it can be proven, the corrected call.\n\n\
            Output: an InvokeResult: successful, result (batchId, and for each file its filePatchId, SHA-256 and \
            changeIds; your keys and descriptions are echoed; the diff), errors, warnings.",
        effect: Effect::Writes,
        input: schema::write_patch,
        output: schema::invoke_result,
    },
    Tool {
        name: "patch",
        description: "Edit one file by its text.\n\n\
            Inputs: path, and patches[], each an operation: replace (oldText, which must stand in the file exactly \
            once, by newText), append_eof, prepend_bof (newText at the end, at the beginning), overwrite (the whole \
            file; creates it). toClipboard keeps the replaced text under a name, fromClipboard inserts it instead of \
            newText, here or in a later call; the same name in both copies. reindent takes the prefix strip from each \
            non-empty line of the new text and puts add in its place.\n\n\
            Behavior: all patches are found in the original file and applied at once, or none is. Old text that \
            differs from the file in white space only is found if that leaves one place, and the answer says so. \
            Missing directories are made.\n\n\
            Output: for each patch where it stands now and how it was found, the file's SHA-256, warnings (for example \
            about generated files), the unified diff; or the errors, with the nearest real lines and, where it can be \
            proven, the corrected call. More than 60,000 tokens are refused: send smaller patches.",
        effect: Effect::Writes,
        input: schema::patch,
        output: schema::answer,
    },
    Tool {
        name: "workspace_create_file",
        description: "Create a new file in the user's workspace or fully replace an existing file when explicitly \
            allowed.\n\n\
            Inputs: path (required, relative, inside the workspace), content (required, the full text; written as \
            UTF-8 without byte order mark, lines ended by \\n), overwrite (optional, default false; true if the file \
            exists and is meant to be replaced), contentFormat (optional; verbatim: content that looks like a diff, a \
            fenced block or a text with lines left out is written all the same).\n\n\
            Behavior: fails if the file exists and overwrite is false. Creates missing directories. Writes the \
            complete file at once or nothing. Not for edits of existing files: use patch or workspace_write_patch.\n\n\
            Output: success, message, the normalized path, sizeBytes, hash (SHA-256 of the bytes written), created, \
            overwritten, errorCode (FileExists, InvalidPath, DirectoryCreateFailed, WriteFailed, TooLarge, HashFailed, \
            UnhandledException, or null).",
        effect: Effect::Writes,
        input: schema::create_file,
        output: schema::created,
    },
    Tool {
        name: "prepare_file_range_edit",
        description: concat!(
            "Plan the replacement of lines of a file by their numbers. Writes nothing.\n\n\
            Inputs: path, range (10~20 for lines 10 to 20, 10 for one line, 10~ to the end, ~20 for the first 20), \
            content (empty: the lines go), existing_hunk_id (a plan of yours that this one replaces; empty: a new one).",
            planned!(),
            apart!()
        ),
        effect: Effect::Prepares,
        input: schema::range_edit,
        output: schema::prepared,
    },
    Tool {
        name: "prepare_file_append",
        description: concat!(
            "Plan lines at the end of a file; a file that is not there is made. Writes nothing.\n\n\
            Inputs: path, content, existing_hunk_id (a plan of yours that this one replaces; empty: a new one).",
            planned!(),
            apart!()
        ),
        effect: Effect::Prepares,
        input: schema::append,
        output: schema::prepared,
    },
    Tool {
        name: "prepare_file_insert_after",
        description: concat!(
            "Plan lines below a line that an anchor describes. Writes nothing.",
            anchored!(),
            planned!(),
            apart!()
        ),
        effect: Effect::Prepares,
        input: schema::insert,
        output: schema::prepared,
    },
    Tool {
        name: "prepare_file_insert_before",
        description: concat!(
            "Plan lines above a line that an anchor describes. Writes nothing.",
            anchored!(),
            planned!(),
            apart!()
        ),
        effect: Effect::Prepares,
        input: schema::insert,
        output: schema::prepared,
    },
    Tool {
        name: "prepare_file_block_replace",
        description: concat!(
            "Plan the replacement of the lines between two lines that anchors describe. Writes nothing.\n\n\
            Inputs: path, start_anchor, end_anchor (the next line below the start that fits), content, \
            include_anchors (true, the default: the two anchor lines stay; false: they are replaced as well), match \
            (contains, the default, equals or regex; for both anchors), occurrence (of the start anchor: a number from \
            1, or last; empty or 0: it fits one line), existing_hunk_id (a plan of yours that this one replaces; \
            empty: a new one).",
            planned!(),
            apart!()
        ),
        effect: Effect::Prepares,
        input: schema::block_replace,
        output: schema::prepared,
    },
    Tool {
        name: "apply_file_modification",
        description: concat!(
            "Write one edit that a prepare_file_* tool planned.\n\n\
            Inputs: hunk_id, as preparing gave it.\n\n\
            Behavior: writes exactly what was planned, for the file exactly as it was then; if anybody changed the \
            file since, nothing is written and the edit has to be prepared again. A plan can be applied once, by \
            whoever prepared it, within its hour.\n\n\
            Output: a YAML summary with the lines as they are now (apply_evidence), and the unified diff.",
            apart!()
        ),
        effect: Effect::Writes,
        input: schema::apply,
        output: schema::prepared,
    },
    Tool {
        name: "overwrite_entire_file",
        description: concat!(
            "Replace the whole content of a file that exists, in one call, without a plan.\n\n\
            Inputs: path, content (all of it), content_format (what the content is, for example verbatim, text or diff; \
            empty: undeclared, and content that looks like a diff, a fenced block or a text with lines left out is then \
            refused).\n\n\
            Behavior: every line is written with a terminator, the last one too. A file that does not exist is \
            refused: use workspace_create_file.\n\n\
            Output: the file's status and SHA-256, normalized flags, the unified diff; or the errors.",
            apart!()
        ),
        effect: Effect::Writes,
        input: schema::overwrite,
        output: schema::answer,
    },
    Tool {
        name: "read_file",
        description: "Read lines of a text file, and the digest that workspace_write_patch needs.\n\n\
            Inputs: path (relative to the workspace root), range (10~20, 10, 10~ or ~20; empty: from the first line), \
            max_lines (0: 500; at most 5,000).\n\n\
            Behavior: secrets and version control's own files are not shown. Lines are given without byte order mark \
            and with \\n, whatever the file has.\n\n\
            Output: path, docPath, sha256 of the whole file, lineCount, startLine, endLine, nextRange (what to ask for \
            next; null when nothing is left), lineEndings, endsWithNewline, isUtf8, text.",
        effect: Effect::Reads,
        input: schema::read_file,
        output: schema::lines_read,
    },
    Tool {
        name: "ripgrep_files",
        description: "Find files: all, those whose path fits a glob, those with a line that fits a regular \
            expression.\n\n\
            Inputs: pattern (Rust regex syntax; empty: any file), path (a file or directory; empty: the whole \
            workspace), case (smart, the default: capitals count if the pattern has one; sensitive; insensitive), glob \
            (*.rs for names at any depth, src/**/*.rs for paths from the root down; empty: any), max_files (0: 100; at \
            most 2,000).\n\n\
            Behavior: files that git ignores, secrets and binary files are passed over; links are not followed.\n\n\
            Output: files by path, each with the number of lines that fit; cut says why there may be more.",
        effect: Effect::Reads,
        input: schema::search_files,
        output: schema::found,
    },
    Tool {
        name: "ripgrep_content",
        description: "Find lines that fit a regular expression.\n\n\
            Inputs: pattern (required; Rust regex syntax, within one line), path (a file or directory; empty: the \
            whole workspace), case (smart, the default: capitals count if the pattern has one; sensitive; \
            insensitive), glob (*.rs for names at any depth, src/**/*.rs for paths from the root down; empty: any), \
            max_files (0: 100), max_results (lines; 0: 200), both at most 2,000, context (lines above and below each, \
            at most 20; 0: none).\n\n\
            Behavior: files that git ignores, secrets and binary files are passed over; links are not followed; of a \
            long line the first 400 characters are shown.\n\n\
            Output: files by path, their lines by number; cut says why there may be more.",
        effect: Effect::Reads,
        input: schema::search_lines,
        output: schema::found,
    },
];

/// The tool of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

#[cfg(test)]
mod tests {
    use aptix_model::tools::prepare;

    use super::*;

    /// WS-MOD-2.1.3: each tool that takes part says that preparing and applying are two messages.
    #[test]
    fn the_tools_that_prepare_and_apply_say_that_they_do_not_mix() {
        for name in prepare::TOOLS {
            let tool = find(name).unwrap();
            assert!(tool.description.contains("Never mix preparing"), "{name}");
            assert!(tool.description.contains("in one message"), "{name}");
        }
    }

    /// TUL-004-7.1.1: what goes in, what it does and what comes out, of every tool; and each argument by its name.
    #[test]
    fn every_description_covers_inputs_behaviour_and_output() {
        for tool in TOOLS {
            assert!(tool.description.contains("\n\nInputs: "), "{}", tool.name);
            assert!(tool.description.contains("\n\nOutput: "), "{}", tool.name);
            let says_what_it_does = ["\n\nBehavior: ", "Writes nothing."];
            assert!(says_what_it_does.iter().any(|words| tool.description.contains(words)), "{}", tool.name);
            let schema = tool.input_schema();
            assert_eq!((&schema["type"], &schema["additionalProperties"]), (&"object".into(), &false.into()));
            for (argument, about) in schema["properties"].as_object().unwrap() {
                assert!(about["description"].is_string(), "{}: {argument}", tool.name);
            }
            assert_eq!(tool.output_schema()["type"], "object");
        }
    }

    /// REQ-PATCH-006.1 to REQ-PATCH-006.8: what the schema of the patch tool asks for.
    #[test]
    fn the_schema_of_patch_has_what_it_has_to() {
        let schema = Value::Object(find("patch").unwrap().input_schema());
        let patches = &schema["properties"]["patches"];
        assert_eq!(schema["required"], serde_json::json!(["path", "patches"]));
        assert_eq!((&schema["properties"]["path"]["type"], &patches["type"]), (&"string".into(), &"array".into()));
        let (patch, fields) = (&patches["items"], &patches["items"]["properties"]);
        assert_eq!(patch["required"], serde_json::json!(["operation"]));
        let operations = serde_json::json!(["replace", "append_eof", "prepend_bof", "overwrite"]);
        assert_eq!(fields["operation"]["enum"], operations);
        for field in ["oldText", "newText", "toClipboard", "fromClipboard"] {
            assert_eq!(fields[field]["type"], "string", "{field}");
        }
        let reindent = &fields["reindent"];
        assert_eq!((&reindent["type"], &reindent["properties"]["strip"]["type"]), (&"object".into(), &"string".into()));
    }
}
