//! The prepare-first tools: their calls, and what they answer.

use aptix_model::batch::{Anchor, AnchorEdit, AnchorMatch, AnchorPlace, FileEdit, Occurrence, Target};
use aptix_model::failure::Failure;
use aptix_model::id::{FilePatchId, Uuid};
use aptix_model::preview::{Action, BlanklineStyle, Evidence, Preview};
use aptix_model::record::UnixMillis;
use aptix_model::report::Warning;
use aptix_model::tools::catalogue::find;
use aptix_model::tools::preview::{Phase, Summary};
use aptix_model::tools::roots::Roots;
use aptix_model::tools::tool::Call;

const ID: &str = "018f6d2e-7c1a-7b3e-9d55-0123456789ab";

/// The tools of the family.
const TOOLS: [&str; 7] = [
    "prepare_file_range_edit",
    "prepare_file_append",
    "prepare_file_insert_after",
    "prepare_file_insert_before",
    "prepare_file_block_replace",
    "overwrite_entire_file",
    "apply_file_modification",
];

fn parse(tool: &str, arguments: &str) -> Result<Call, Failure> {
    find(tool)?.parse(arguments, &Roots::default()).map_err(|mut document| document.part.failures.remove(0))
}

fn edit(call: Call) -> (AnchorEdit, Option<FilePatchId>) {
    let (patch, existing) = match call {
        Call::Prepare { patch, existing } => (patch, existing),
        Call::Edit { patch, .. } => (patch, None),
        _ => panic!("an edit"),
    };
    assert_eq!(patch.target, Target::Path("a/b".to_owned()));
    let FileEdit::AnchorEdit(edit) = patch.edit else { panic!("an anchor edit") };
    (edit, existing)
}

fn anchor(matching: AnchorMatch, occurrence: Option<Occurrence>) -> Anchor {
    Anchor { text: "t".to_owned(), matching, occurrence }
}

/// WS-MOD-4.2.8, WS-MOD-4.2.9, WS-MOD-4.2.10, WS-MOD-4.2.12: fill-in values mean that nothing was given.
#[test]
fn calls_are_read_and_fill_in_values_are_as_if_left_out() {
    let range = |start_line, end_line| AnchorPlace::Range { start_line, end_line };
    let after = AnchorPlace::After;
    let contains = || anchor(AnchorMatch::Contains, None);
    for (tool, arguments, place) in [
        (TOOLS[0], r#"{"path":"a/b","range":"2~3","content":"x"}"#, range(2, Some(3))),
        (TOOLS[0], r#"{"path":"./a\\b","range":"2","content":"x"}"#, range(2, Some(2))),
        (TOOLS[0], r#"{"path":"a/b","range":"2~","content":"x"}"#, range(2, None)),
        (TOOLS[0], r#"{"path":"a/b","range":"~4","content":"x"}"#, range(1, Some(4))),
        (TOOLS[1], r#"{"path":"a/b","content":"x","existing_hunk_id":""}"#, AnchorPlace::Append),
        (TOOLS[2], r#"{"path":"a/b","anchor":"t","content":"x"}"#, after(contains())),
        (TOOLS[2], r#"{"path":"a/b","anchor":"t","content":"x","match":"","occurrence":""}"#, after(contains())),
        (TOOLS[2], r#"{"path":"a/b","anchor":"t","content":"x","occurrence":0}"#, after(contains())),
        (TOOLS[2], r#"{"path":"a/b","anchor":"t","content":"x","occurrence":"0"}"#, after(contains())),
        (
            TOOLS[2],
            r#"{"path":"a/b","anchor":"t","content":"x","match":"equals","occurrence":2}"#,
            after(anchor(AnchorMatch::Equals, Some(Occurrence::Number(2)))),
        ),
        (
            TOOLS[3],
            r#"{"path":"a/b","anchor":"t","content":"x","match":"regex","occurrence":"last"}"#,
            AnchorPlace::Before(anchor(AnchorMatch::Regex, Some(Occurrence::Last))),
        ),
        (
            TOOLS[4],
            r#"{"path":"a/b","start_anchor":"t","end_anchor":"t","content":"x"}"#,
            AnchorPlace::Between { start: contains(), end: contains(), takes_anchors: false },
        ),
        (
            TOOLS[4],
            r#"{"path":"a/b","start_anchor":"t","end_anchor":"t","content":"x","include_anchors":false}"#,
            AnchorPlace::Between { start: contains(), end: contains(), takes_anchors: true },
        ),
        (TOOLS[5], r#"{"path":"a/b","content":"x","content_format":""}"#, AnchorPlace::Whole { content_format: None }),
        (
            TOOLS[5],
            r#"{"path":"a/b","content":"x","content_format":"diff"}"#,
            AnchorPlace::Whole { content_format: Some("diff".to_owned()) },
        ),
    ] {
        let (edit, existing) = edit(parse(tool, arguments).unwrap_or_else(|failure| panic!("{arguments}: {failure}")));
        assert_eq!(edit, AnchorEdit { place, content: "x".to_owned() }, "{arguments}");
        assert_eq!(existing, None);
    }
    let named = format!(r#"{{"path":"a/b","content":"x","existing_hunk_id":"{ID}"}}"#);
    assert_eq!(edit(parse(TOOLS[1], &named).unwrap()).1, Some(ID.parse().unwrap()));
}

/// Writing takes the id of a plan.
#[test]
fn a_plan_is_applied_by_its_id() {
    let call = parse("apply_file_modification", &format!(r#"{{"hunk_id":"{ID}"}}"#)).unwrap();
    assert_eq!(call, Call::Apply { hunk: ID.parse().unwrap() });
}

/// WS-MOD-1.3, WS-MOD-4.2.7: the tools that are gone stay gone, and no id is made up.
#[test]
fn what_is_no_call_is_refused_with_the_next_step() {
    for (tool, arguments, expected, hint) in [
        ("append_file", "{}", "INVALID_REQUEST (UNKNOWN_OPERATION)", "use prepare_file_append"),
        ("insert_after", "{}", "INVALID_REQUEST (UNKNOWN_OPERATION)", "use prepare_file_insert_after"),
        ("insert_before", "{}", "INVALID_REQUEST (UNKNOWN_OPERATION)", "use prepare_file_insert_before"),
        ("replace_block", "{}", "INVALID_REQUEST (UNKNOWN_OPERATION)", "use prepare_file_block_replace"),
        ("apply_block_replace", "{}", "INVALID_REQUEST (UNKNOWN_OPERATION)", "use apply_file_modification"),
        ("prepare_file_apend", "{}", "INVALID_REQUEST (UNKNOWN_OPERATION)", "did you mean prepare_file_append?"),
        ("zzz", "{}", "INVALID_REQUEST (UNKNOWN_OPERATION)", "the tools are workspace_write_patch"),
        (
            TOOLS[1],
            r#"{"path":"a","content":"x","existing_hunk_id":"mine"}"#,
            "INVALID_REQUEST (ID_FORMAT)",
            "never chosen",
        ),
        (TOOLS[1], r#"{"path":"a","content":"x","hunk":"y"}"#, "INVALID_REQUEST (UNKNOWN_FIELD)", ""),
        (TOOLS[1], r#"{"path":"a"}"#, "INVALID_REQUEST (MISSING)", ""),
        (TOOLS[0], r#"{"path":"a","content":"x","range":"b"}"#, "INVALID_REQUEST (NUMBER)", "10~20"),
        (
            TOOLS[2],
            r#"{"path":"a","content":"x","anchor":"t","match":"fuzzy"}"#,
            "INVALID_REQUEST (UNKNOWN_ENUM)",
            "contains",
        ),
        (
            TOOLS[2],
            r#"{"path":"a","content":"x","anchor":"t","occurrence":"all"}"#,
            "INVALID_REQUEST (OCCURRENCE)",
            "last",
        ),
        (
            TOOLS[2],
            r#"{"path":"a","content":"x","anchor":"t","occurrence":-1}"#,
            "INVALID_REQUEST (OCCURRENCE): occurrence: \"-1\" is no occurrence",
            "last",
        ),
    ] {
        let failure = parse(tool, arguments).unwrap_err();
        assert!(failure.to_string().starts_with(expected), "{failure}");
        assert!(failure.hint.unwrap_or_default().contains(hint), "{tool} {arguments}");
    }
}

/// WS-MOD-2.1.2, WS-MOD-4.1.1, WS-MOD-5.1.4: the summary of a plan, and of what was applied.
#[test]
fn a_preview_is_summed_up_in_yaml() {
    let evidence = |line: &str| Evidence { before: vec![], range: vec![line.to_owned()], left_out: 0, after: vec![] };
    let preview = Preview {
        path: "no: yes".to_owned(),
        kind: "append",
        action: Action::Create,
        start_line: 3,
        old_lines: 0,
        new_lines: 1,
        file_eof_newline_added: false,
        content_eof_newline_added: true,
        blankline_style: Some(BlanklineStyle {
            file_above: 1,
            content_leading: 2,
            content_trailing: 0,
            file_below: 0,
            has_above: true,
            has_below: false,
        }),
        style_warning: Some("3 blank lines above the new text".to_owned()),
        evidence: evidence("old"),
        apply_evidence: evidence("new: yes"),
        warnings: vec![Warning {
            code: "GENERATED_FILE".to_owned(),
            message: "it is: generated".to_owned(),
            line: None,
        }],
        diff: None,
    };
    let hunk = FilePatchId(Uuid::from_u128(7));
    let planned = Summary::of(&preview, Phase::Planned { hunk, expires: UnixMillis(99) }).to_yaml().unwrap();
    let applied = Summary::of(&preview, Phase::Applied { hunk }).to_yaml().unwrap();
    let both = [
        "mode: append",
        "action: create",
        "  message: \"it is: generated\"",
        "path: \"no: yes\"",
        "start_line: 3",
        "  normalized_content_eof_newline_added: true",
        "  normalized_file_eof_newline_added: false",
        "  content_leading_blank_lines: 2",
        "style_warning: 3 blank lines above the new text",
    ];
    for (yaml, own, others) in [
        (&planned, ["status: planned", "expires_at_ms: 99", "evidence:"], "apply_evidence:"),
        (&applied, ["status: applied", "apply_evidence:", "  - \"new: yes\""], "evidence:"),
    ] {
        for line in both.iter().chain(&own) {
            assert!(yaml.lines().any(|found| found == *line), "{line}\n{yaml}");
        }
        assert!(!yaml.lines().any(|found| found == others), "{yaml}");
        assert!(yaml.contains(&hunk.to_string()));
    }
}
