//! Codex patches as documents: every construct, and every way in which one can be malformed.

use aptix_model::batch::{Chunk, Content, FileEdit, FilePatch, LineKind, Presence};
use aptix_model::documents::{Dialect, Document, parse};
use aptix_model::failure::Failure;

fn read(text: &str) -> Result<Document, Vec<Failure>> {
    let document = parse(text.as_bytes(), None)?;
    assert_eq!(document.dialect, Dialect::CodexPatch);
    Ok(document)
}

/// A patch with these lines between its markers.
fn patch(lines: &str) -> String {
    format!("*** Begin Patch\n{lines}*** End Patch\n")
}

/// What a file patch does, in few words: `path: +content`, `path: gone`, `path [-> path]: chunk / chunk`.
fn shown(file: &FilePatch) -> String {
    let path = file.target.as_str();
    match &file.edit {
        FileEdit::WriteFile(write) => {
            assert_eq!(write.presence, Presence::Absent);
            let Content::Text(text) = &write.content else { panic!("text") };
            format!("{path}: +{text:?}")
        }
        FileEdit::DeleteFile => format!("{path}: gone"),
        FileEdit::ContextPatch(patch) => {
            let to = patch.move_to.as_ref().map(|to| format!(" -> {to}")).unwrap_or_default();
            format!("{path}{to}: {}", patch.chunks.iter().map(shown_chunk).collect::<Vec<_>>().join(" / "))
        }
        edit => panic!("{edit:?}"),
    }
}

fn shown_chunk(chunk: &Chunk) -> String {
    let mut words: Vec<String> = chunk.anchors.iter().map(|anchor| format!("@{anchor:?}")).collect();
    words.extend(chunk.lines.iter().map(|line| {
        let sign = match line.kind {
            LineKind::Context => '=',
            LineKind::Removed => '-',
            LineKind::Added => '+',
        };
        format!("{sign}{:?}", line.text)
    }));
    words.extend(chunk.is_at_end.then(|| "$".into()));
    words.join(" ")
}

#[test]
fn every_construct_is_read() {
    let cases: &[(&str, &[&str])] = &[
        ("*** Add File: a\n+x\n+ y\n++\n+\n", &[r#"a: +"x\n y\n+\n\n""#]),
        ("*** Add File: a\n", &[r#"a: +"""#]),
        ("*** Add File: .\\d\\a.rs\n+x\n\n*** Delete File: b\n\n", &[r#"d/a.rs: +"x\n""#, "b: gone"]),
        ("*** Update File: a\n@@\n x\n-y\n+z\n", &[r#"a: ="x" -"y" +"z""#]),
        // The first chunk may come without its marker, and an empty line is an empty line of the file.
        ("*** Update File: a\n-y\n\n+z\n", &[r#"a: -"y" ="" +"z""#]),
        ("*** Update File: a\n\n@@\n-y\n\n@@\n-z\n", &[r#"a: -"y" ="" / -"z""#]),
        ("*** Update File: a\n@@ fn f() {\n-y\n", &[r#"a: @"fn f() {" -"y""#]),
        ("*** Update File: a\n@@ class A\n@@   def f():\n@@\n-y\n", &[r#"a: @"class A" @"  def f():" -"y""#]),
        ("*** Update File: a\n@@\n-y\n@@ b\n-z\n", &[r#"a: -"y" / @"b" -"z""#]),
        ("*** Update File: a\n@@\n-y\n*** End of File\n", &[r#"a: -"y" $"#]),
        ("*** Update File: a\n@@\n-y\n*** End of File  \n\n@@\n+z\n*** End of File\n", &[r#"a: -"y" $ / +"z" $"#]),
        ("*** Update File: a\n*** Move to: d/b\n@@\n-y\n+z\n", &[r#"a -> d/b: -"y" +"z""#]),
        ("*** Update File: a\n*** Move to: .\\d\\b\n", &["a -> d/b: "]),
        // Marker lines may be padded; within an update what begins with a blank is a line of the file.
        ("*** Delete File:  a \n  *** Delete File: b\t\n", &["a: gone", "b: gone"]),
        (
            "*** Update File: a\n@@\n *** End Patch\n  *** Update File: b\n-*** Move to: c\n+@@ d\n",
            &[r#"a: ="*** End Patch" =" *** Update File: b" -"*** Move to: c" +"@@ d""#],
        ),
        ("*** Update File: a\n@@\n-y\n*** Update File: b  \n@@\n-z\n", &[r#"a: -"y""#, r#"b: -"z""#]),
        // Text that looks like no prefix but is one.
        ("*** Update File: a\n@@\n--- x\n+++ y\n  z\n \n", &[r#"a: -"-- x" +"++ y" =" z" ="""#]),
        ("*** Update File: a\n@@ \u{e9}t\u{e9}\n-\u{e9}\n", &["a: @\"\u{e9}t\u{e9}\" -\"\u{e9}\""]),
    ];
    for (lines, expected) in cases {
        let plain = patch(lines);
        let wrapped = |open: &str, close: &str| format!("{open}\n{plain}{close}\n");
        for text in [
            plain.clone(),
            plain.trim_end().to_owned(),
            format!("\n  \n{}\n \n", plain.replacen("*** Begin Patch", "  *** Begin Patch \t", 1)),
            wrapped("<<EOF", "EOF"),
            wrapped("<<'EOF'", "EOF"),
            wrapped("<<\"EOF\"", "EOF  "),
            wrapped("apply_patch <<'PATCH'", "PATCH"),
            plain.replace('\n', "\r\n"),
        ] {
            let document = read(&text).unwrap_or_else(|failures| panic!("{text}\n{failures:?}"));
            assert_eq!(document.batch.files.iter().map(shown).collect::<Vec<_>>(), *expected, "{text}");
            assert_eq!(document.warnings, []);
        }
    }
}

#[test]
fn an_environment_id_has_no_effect_and_is_said_to() {
    let document = read(&patch("*** Environment ID: x\n*** Delete File: a\n")).unwrap();
    assert_eq!(document.batch.files.len(), 1);
    assert_eq!(document.warnings[0].code, "ENVIRONMENT_ID_IGNORED");
}

#[test]
fn what_is_malformed_is_refused_with_its_line() {
    let update = "*** Update File: a\n";
    let cases = [
        // markers
        (patch("*** Delete File: a\n").replace("*** End Patch\n", ""), "-", "MARKER", "ends before '*** End Patch'"),
        (format!("*** Begin Patch\n{update}@@\n-x\n"), "-", "MARKER", "ends before '*** End Patch'"),
        ("*** Begin Patch\n".into(), "-", "MARKER", "ends before '*** End Patch'"),
        (patch("*** delete file: a\n"), "line 2", "MARKER", "found \"*** delete file: a\""),
        (patch("x\n"), "line 2", "MARKER", "expected '*** Add File:', '*** Delete File:', '*** Update File:'"),
        (patch("*** Environment ID: x\n*** Environment ID: y\n"), "line 3", "MARKER", "Environment"),
        (patch("*** Delete File: a\n+x\n"), "line 3", "MARKER", "found \"+x\""),
        (patch(&format!("{update}*** End of File\n")), "line 3", "MARKER", "lines of the file above it"),
        (patch(&format!("{update}@@\n*** End of File\n")), "line 4", "MARKER", "lines of the file above it"),
        (patch(&format!("{update}-x\n*** End of File\n-y\n")), "line 5", "MARKER", "after '*** End of File'"),
        (format!("<<EOF\n{}", patch("")), "-", "MARKER", "ends before 'EOF'"),
        (format!("<<EOF\n{}EOL\n", patch("")), "line 4", "MARKER", "expected 'EOF', found \"EOL\""),
        // text after the patch
        (format!("{}done\n", patch("*** Delete File: a\n")), "line 4", "TRAILING", "found"),
        (format!("{0}{0}", patch("*** Delete File: a\n")), "line 4", "MULTIPLE_BLOCKS", "second patch"),
        // lines without prefix
        (patch("*** Add File: a\n+x\ny\n"), "line 4", "LINE_PREFIX", "found \"y\""),
        (patch("*** Add File: a\n+x\n\n+y\n"), "line 4", "LINE_PREFIX", "found \"\""),
        (patch("*** Add File: a\n+x\n y\n"), "line 4", "LINE_PREFIX", "found \" y\""),
        (patch(&format!("{update}@@\n x\ny\n")), "line 5", "LINE_PREFIX", "found \"y\""),
        (patch(&format!("{update}@@\n\u{e9}\n")), "line 4", "LINE_PREFIX", "found \"\u{e9}\""),
        (patch(&format!("{update}@@x\n")), "line 3", "LINE_PREFIX", "found \"@@x\""),
        (patch(&format!("{update}-x\n*** Move to: b\n")), "line 4", "LINE_PREFIX", "Move to"),
        (patch(&format!("{update}-x\n*** Begin Patch\n")), "line 4", "LINE_PREFIX", "Begin Patch"),
        (patch(&format!("{update}-x\n\\ No newline at end of file\n")), "line 4", "LINE_PREFIX", "No newline"),
        // nothing to do
        (patch(update), "line 2", "EMPTY", "no lines"),
        (patch(&format!("{update}\n\n")), "line 2", "EMPTY", "no lines"),
        (patch(&format!("{update}@@\n")), "line 3", "EMPTY", "no lines"),
        (patch(&format!("{update}-x\n@@ y\n")), "line 4", "EMPTY", "no lines"),
        (patch(&format!("{update}@@ y\n*** Delete File: b\n")), "line 3", "EMPTY", "no lines"),
        // a unified diff in disguise
        (patch(&format!("{update}@@ -1,3 +1,4 @@ fn x\n x\n")), "line 3", "HUNK_HEADER", "no line numbers"),
        (patch(&format!("{update}@@ -1 +1 @@\n-x\n")), "line 3", "HUNK_HEADER", "no line numbers"),
    ];
    for (text, field, detail, message) in cases {
        let message = if detail == "TRAILING" { "text after '*** End Patch': \"done\"" } else { message };
        let failures = parse(text.as_bytes(), Some(Dialect::CodexPatch)).expect_err(&text);
        let [failure] = failures.as_slice() else { panic!("{failures:?}") };
        assert_eq!(failure.field.as_deref().unwrap_or("-"), field, "{text}\n{failure}");
        let reason = if field == "-" { "PATCH_TRUNCATED" } else { "PATCH_MALFORMED" };
        assert_eq!((failure.reason.code(), failure.detail.unwrap().code()), (reason, detail), "{text}");
        assert!(failure.message.contains(message), "{text}\n{failure}");
    }
}

#[test]
fn a_long_line_is_shown_cut() {
    let text = patch(&format!("*** Update File: a\n@@\n{}\n", "x".repeat(100_000)));
    assert!(read(&text).unwrap_err()[0].message.len() < 300);
}

#[test]
fn a_patch_of_more_files_than_any_batch_is_refused() {
    let text = patch(&"*** Delete File: a\n".repeat(10_001));
    let failure = read(&text).unwrap_err().remove(0);
    assert_eq!((failure.reason.code(), failure.detail.unwrap().code()), ("TOO_LARGE", "FILES"));
    assert_eq!(failure.field.as_deref(), Some("line 10002"));
}

/// A blank before the last marker is no part of a line of the file, unless the patch shows such markers as lines of files.
#[test]
fn the_last_marker_may_have_blanks_before_it() {
    let plain = parse(b"*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch\n", None).unwrap();
    for text in [
        "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n *** End Patch\n",
        " *** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n\t*** End Patch\n\n",
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n *** End Patch\nEOF\n",
    ] {
        assert_eq!(parse(text.as_bytes(), None).unwrap().batch, plain.batch, "{text}");
    }
    for text in [
        "*** Begin Patch\n*** Update File: a\n@@\n *** Begin Patch\n-x\n+y\n *** End Patch\n",
        "*** Begin Patch\n*** Update File: a\n@@\n+*** End Patch\n *** End Patch\n",
        "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n *** End Patch\n-z\n",
    ] {
        parse(text.as_bytes(), None).expect_err(text);
    }
}

/// The headers of chunks that diffs have and codex has not say the same or nothing.
#[test]
fn a_header_of_a_chunk_may_be_written_as_in_a_diff() {
    for (header, anchors) in [
        ("@@", &[][..]),
        ("@@ ", &[]),
        ("@@ @@", &[]),
        ("@@ ... @@", &[]),
        ("@@ ...", &[]),
        ("@@ fn main() {", &["fn main() {"]),
        ("@@ fn main() { @@", &["fn main() {"]),
        ("@@     indented", &["    indented"]),
    ] {
        let document = read(&patch(&format!("*** Update File: a\n{header}\n-x\n+y\n"))).unwrap();
        let FileEdit::ContextPatch(patch) = &document.batch.files[0].edit else { panic!("a context patch") };
        assert_eq!(patch.chunks[0].anchors, anchors, "{header}");
    }
}

/// In an answer too, where prose may follow.
#[test]
fn prose_may_follow_an_end_marker_with_blanks_before_it() {
    let plain = "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch\n";
    let answer =
        "Here:\n\n*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n *** End Patch\n\nTell me whether it works.\n";
    let batch = |text: &str| parse(text.as_bytes(), None).unwrap().batch;
    assert_eq!(batch(answer).files, batch(plain).files);
    let shown = "Here:\n\n*** Begin Patch\n*** Update File: a\n@@\n *** End Patch\n-x\n+y\n*** End Patch\n\nDone.\n";
    let FileEdit::ContextPatch(patch) = &batch(shown).files[0].edit else { panic!("a context patch") };
    assert_eq!(patch.chunks[0].lines.len(), 3);
}
