//! Blocks of answers that are no edits: what they are named for, which are examples, and which refuse the answer.

use aptix_model::documents::parse;

use crate::chat::{A, blocks, check, diff, read, refuse};

/// What models write behind a fence, in its first line or above it says whose lines these are, and not what is to become
/// of them: the files decide whether they are quoted.
#[test]
fn a_block_that_is_named_for_a_file_is_held_against_it() {
    let edits = format!("So:\nf.md\n{}\n", blocks("a"));
    let infos =
        ["python:src/m.py", "python src/m.py", "js title=\"m.js\"", "src/m.py", "diff:src/m.py", "12:15:src/m.py"];
    for info in infos {
        check(&format!("{edits}```{info}\nx = 1\n```\n"), &["f.md", named(info)]);
        if !info.starts_with("12:") {
            refuse(&format!("So:\n```{info}\nx = 1\n```\n"), "INVALID_REQUEST.FENCE", "is named for");
            refuse(&format!("So:\n```{info}\nx = 1\n```\n"), "INVALID_REQUEST.FENCE", "leave the block out");
        }
        check(&format!("So:\n```{info}\n{}```\n", blocks("a")), &[named(info)]);
    }
    refuse("So:\n```12:15:src/m.py\nx = 1\n```\n", "NO_EDIT_FOUND", "");
    for info in ["python", "rust,ignore", "js {1,3}"] {
        check(&format!("{edits}```{info}\nx = 1\n```\n"), &["f.md", "BLOCK_IGNORED"]);
    }
    for comment in ["# src/m.py", "// src/m.py", "<!-- src/m.py -->", "/* File: src/m.py */"] {
        check(&format!("{edits}```\n{comment}\nx = 1\n```\n"), &["f.md", "src/m.py"]);
        refuse(&format!("So:\n```\n{comment}\nx = 1\n```\n"), "INVALID_REQUEST.FENCE", "is named for");
    }
    for above in [
        "src/m.py",
        "src/m.py:",
        "`src/m.py`",
        "**src/m.py**",
        "**`src/m.py`:**",
        "### src/m.py",
        "## `src/m.py`:",
        "1. src/m.py",
        "- **src/m.py**",
        "> src/m.py",
        "File: src/m.py",
        "src\\m.py",
        "<details><summary>src/m.py</summary>",
        "<summary><b><code>src/m.py</code></b></summary>",
    ] {
        for blank in ["", "\n", "\n\n"] {
            check(&format!("{edits}{above}\n{blank}```py\nx = 1\n```\n"), &["f.md", "src/m.py"]);
        }
        // Shell and output, too, by their name.
        check(&format!("{edits}{above}\n```bash\nx = 1\n```\n"), &["f.md", "src/m.py"]);
        refuse(&format!("{above}\n```py\nx = 1\n```\n"), "INVALID_REQUEST.FENCE", "is named for \"src/m.py\"");
        // An empty block is named all the same.
        check(&format!("{edits}{above}\n```py\n```\n"), &["f.md", "src/m.py"]);
        // JSON as well.
        check(&format!("{edits}{above}\n```json\n{{\"a\": 1}}\n```\n"), &["f.md", "src/m.py"]);
    }
    // What only the tree, or an edit, could make a path.
    for (above, name) in
        [("## Usage", "Usage?"), ("LICENSE", "LICENSE"), ("Output:", "Output?"), ("src/lib", "src/lib?")]
    {
        check(&format!("{edits}{above}\n```\nx = 1\n```\n"), &["f.md", name]);
    }
    for above in ["tests/", "Two words", "https://a.org/b.json", "", "---", "The file src/m.py is short."] {
        check(&format!("{edits}Text.\n{above}\n```\nx = 1\n```\n"), &["f.md", "BLOCK_IGNORED"]);
    }
    check(&format!("{edits}```py\n# setup\nx = 1\n```\n"), &["f.md", "BLOCK_IGNORED"]);
    // The text above belongs to another block, or is one.
    check(&format!("src/m.py\n{}\n```\nx = 1\n```\n", blocks("a")), &["src/m.py", "BLOCK_IGNORED"]);
    check(&format!("{edits}src/m.py\n```\nx\n```\n```\ny\n```\n"), &["f.md", "src/m.py", "BLOCK_IGNORED"]);
    check(
        &format!("{edits}```bash\n#!/bin/sh\nls\n```\n```c\n#include <a.h>\n```\n"),
        &["f.md", "BLOCK_IGNORED", "BLOCK_IGNORED"],
    );
    // Bare blocks with such a block among them are an answer as well.
    check(&format!("f.md\n{}```python:src/m.py\nx = 1\n```\n", blocks("a")), &["f.md", "src/m.py"]);
    check(&format!("f.md\n{}g.md\n```\nx = 1\n```\n", blocks("a")), &["f.md", "g.md"]);
}

/// A sentence that ends in a colon announces what follows it.
#[test]
fn a_sentence_with_a_path_announces_a_block() {
    let edits = format!("So:\nf.md\n{}\n", blocks("a"));
    check(&format!("{edits}Update `src/m.py` to:\n\n```py\nx = 1\n```\n"), &["f.md", "Update? src/m.py to?:"]);
    check(&format!("{edits}- **In (src/m.py):**\n  ```\n  x\n  ```\n"), &["f.md", "In? src/m.py:"]);
    check(&format!("{edits}Then it is:\n```\nx\n```\n"), &["f.md", "Then? it? is?:"]);
    // Commands and output are announced by what makes them.
    for tag in ["bash", "Shell", "console", "text", "output"] {
        check(&format!("{edits}Run `src/m.py` so:\n```{tag}\nx\n```\n"), &["f.md", "BLOCK_IGNORED"]);
    }
    check(&format!("{edits}Update src/m.py.\n```\nx\n```\n"), &["f.md", "BLOCK_IGNORED"]);
    check(&format!("{edits}Update src/m.py to:\n\nAs said.\n```\nx\n```\n"), &["f.md", "BLOCK_IGNORED"]);
    // Without another edit nothing is lost.
    refuse("Update src/m.py to:\n```\nx\n```\n", "NO_EDIT_FOUND", "");
    // Of a long sentence only what is a path counts.
    let long = format!("{}src/m.py:", "word number ".repeat(60).replace("number", "n1 n2 n3"));
    check(&format!("{edits}{}\n```\nx\n```\n", long), &["f.md", "word? n1? n2? n3? src/m.py:"]);
}

/// An example has its place and the reason why it is one.
#[test]
fn each_example_is_named_by_its_line() {
    let answer = format!("So:\n```json\n{A}\n```\nlike this\n```json\n{{\"b\": 1}}\n```\nand that\n```\n```\n");
    let warnings = parse(answer.as_bytes(), None).unwrap().warnings;
    let said: Vec<_> = warnings.iter().map(|warning| (warning.line, warning.message.as_str())).collect();
    assert_eq!(
        said,
        [
            (Some(6), "the json block at lines 6 to 8 of the answer is no edit: its keys are 'b'"),
            (Some(10), "the untagged block at lines 10 to 11 of the answer is no edit: it is empty"),
        ]
    );
    // Of very many only the first, and how many more there are.
    let many = format!("{}```json\n{A}\n```\n", "```py\nx\n```\n".repeat(1000));
    let document = parse(many.as_bytes(), None).unwrap();
    let last = document.warnings.last().unwrap();
    assert_eq!((document.warnings.len(), last.line), (100, None));
    assert_eq!(last.message, "901 more blocks of the answer are no edits");
}

/// JSON is an edit only if it is one of the four kinds; what is nearly one refuses the answer, and all else is an example.
#[test]
fn sample_json_is_no_edit() {
    let edits = format!("So:\nf.md\n{}\n", blocks("a"));
    let with = |json: &str| format!("{edits}The endpoint returns this\n```json\n{json}\n```\n");
    for other in [
        r#"{"name": "a", "version": 1}"#,
        r#"{"files": ["a", "b"]}"#,
        r#"{"files": [{"path": "a", "size": 1}]}"#,
        r#"{"files": [{"filename": "a", "changes": 3}]}"#,
        r#"{"path": "a"}"#,
        r#"{"role": "user", "content": "x"}"#,
        r#"{"command": "view", "path": "a"}"#,
        r#"{"compilerOptions": {}, /* why */ "files": []}"#,
        r#"["a", "b"]"#,
        "3",
        "{...}",
    ] {
        check(&with(other), &["f.md", "BLOCK_IGNORED"]);
    }
    for (bare, tool) in [
        (r#"{"path": "/data/a.csv", "content": "x"}"#, "workspace_create_file"),
        (r#"[{"path": "a", "content": "x", "size": 3}]"#, "workspace_create_file"),
        (r#"{"command": "create", "path": "a", "file_text": "x"}"#, "str_replace_based_edit_tool"),
        (r#"{"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"}"#, "str_replace_based_edit_tool"),
    ] {
        refuse(&with(bare), "INVALID_REQUEST.FENCE", "envelope of a tool call");
        refuse(&with(bare), "INVALID_REQUEST.FENCE", tool);
        refuse(&format!("```json\n{bare}\n```\n"), "INVALID_REQUEST.FENCE", "<tool_call>");
        let call = format!("<tool_call>\n{{\"name\": \"{tool}\", \"arguments\": {bare}}}\n</tool_call>\n");
        if bare.starts_with('{') {
            check(&format!("{call}Done."), &[if bare.contains("csv") { "/data/a.csv" } else { "a" }]);
        }
    }
    for (near, code, words) in [
        (r#"{"files": [{"path": "b", "contents": "x"}]}"#, "UNKNOWN_FIELD", "contents"),
        (r#"{"files": [{"file": "b", "content": "x"}]}"#, "UNKNOWN_FIELD", "file"),
        (r#"{"patches": [{"file": "b", "replacements": []}]}"#, "UNKNOWN_FIELD", "path"),
        (r#"{"path": "b", "patches": [{"operation": "swap"}]}"#, "UNKNOWN_OPERATION", "swap"),
        (r#"{"files": [{"path": "b", "changes": []}]}"#, "UNKNOWN_FIELD", "path"),
        (r#"{"files": [{"path": "b", "content": "x"},]}"#, "JSON", "line 11"),
        (r#"{"files": [{"path": "b", "content": "x"}], // so"#, "JSON", "lines 10 to 12"),
        (r#"{files: [{path: 'b', content: 'x'}]}"#, "JSON", ""),
    ] {
        refuse(&with(near), &format!("INVALID_REQUEST.{code}"), words);
    }
}

/// What a tool of ours is called with outside of blocks is an edit, and so is what is in a tag or a fence of ours.
#[test]
fn calls_of_our_tools_are_edits() {
    let arguments = r#"{"path": "n.md", "content": "x\n"}"#;
    let call = |name: &str| format!("<tool_call>{{\"name\": \"{name}\",\n \"arguments\": {arguments}}}</tool_call>\n");
    check(&format!("Now:\n{}Done.\n", call("workspace_create_file")), &["n.md"]);
    check(&format!("Now:\n{}```json\n{A}\n```\n", call("workspace_create_file")), &["n.md", "a"]);
    check(&format!("Now:\n<aptix-create-file>\n{arguments}\n</aptix-create-file>\n"), &["n.md"]);
    check(&format!("Now:\n```aptix\n{arguments}\n```\n"), &["n.md"]);
    check(&format!("Now:\n```aptix-create-file\n{arguments}\n```\n"), &["n.md"]);
    for other in ["read_file", "apply_file_modification", "bash", ""] {
        refuse(&format!("Now:\n{}", call(other)), "INVALID_REQUEST.FENCE", "workspace_create_file");
    }
    // The same in a block; but no call of another tool that names a file, and in no other form.
    let in_block = |json: &str| format!("```json\n{json}\n```\n");
    let object = |name: &str| format!("{{\"name\": \"{name}\",\n\"arguments\": {arguments}}}");
    check(&in_block(&object("workspace_create_file")), &["n.md"]);
    check(&format!("```aptix\n{}\n```\n", object("workspace_create_file")), &["n.md"]);
    refuse(&in_block(&object("write_file")), "INVALID_REQUEST.FENCE", "the tool \"write_file\"");
    refuse(&in_block(&object("patch").replace("arguments", "input")), "INVALID_REQUEST.UNKNOWN_FIELD", "input");
    check(
        &format!("{}{}", in_block(A), in_block(r#"{"name": "get", "arguments": {"city": "x"}}"#)),
        &["a", "BLOCK_IGNORED"],
    );
    check(&format!("```aptix\n{}```\n", diff("d")), &["d"]);
    refuse("```aptix\nx = 1\n```\n", "INVALID_REQUEST.UNKNOWN_DIALECT", "no dialect");
    let cut = call("workspace_create_file").replace("</tool_call>", "");
    refuse(&format!("Now:\n{cut}"), "INVALID_REQUEST.FENCE", "expected </tool_call>");
    let wrong = call("workspace_create_file").replace("content", "contents");
    refuse(&format!("Now:\n{wrong}"), "INVALID_REQUEST.UNKNOWN_FIELD", "line 3");
    let extra = call("workspace_create_file").replace("\"name\"", "\"id\": 1, \"name\"");
    refuse(&format!("Now:\n{extra}"), "INVALID_REQUEST.UNKNOWN_FIELD", "id");
    let twice = call("workspace_create_file").repeat(2);
    refuse(&format!("Now:\n{twice}"), "INVALID_REQUEST.DUPLICATE_PATH", "lines 4 to 5");
    refuse("Now:\n<aptix>\n{\"a\": 1}\n</aptix>\n", "INVALID_REQUEST.UNKNOWN_DIALECT", "its keys are 'a'");
    refuse(&format!("Now:\n<aptix>\n{arguments}\n"), "INVALID_REQUEST.FENCE", "expected </aptix>");
}

/// A fence around the layout of an answer is read through if it can only be that.
#[test]
fn an_outer_fence_is_read_through_or_refused() {
    let bundle = format!("### Bundle\n```json\n{A}\n```\n");
    let layout = format!("{bundle}\n### Patch\n```patch\n{}```\n", diff("d"));
    for tag in ["text", "markdown", "md", ""] {
        check(&format!("So:\n\n````{tag}\n{layout}````\n"), &["a", "d"]);
        check(&format!("````{tag}\n{layout}````\n"), &["a", "d"]);
        check(&format!("~~~{tag}\n{layout}~~~\n"), &["a", "d"]);
        // with an inside that is cut
        let cut = layout.strip_suffix("```\n").unwrap();
        refuse(&format!("````{tag}\n{cut}````\n"), "INVALID_REQUEST.FENCE", "its inside is not whole");
        // beside other edits it may be an example
        refuse(
            &format!("````{tag}\n{bundle}````\n```patch\n{}```\n", diff("d")),
            "INVALID_REQUEST.FENCE",
            "other edits",
        );
        refuse(&format!("````{tag}\n{bundle}````\nf.md\n{}", blocks("a")), "INVALID_REQUEST.FENCE", "other edits");
        refuse(&format!("````{tag}\n{bundle}````\n").repeat(2), "INVALID_REQUEST.FENCE", "other edits");
    }
    // Nothing inside is skipped.
    let inside = |more: &str| format!("````md\n{bundle}\n{more}````\n");
    refuse(&inside(&diff("d")), "INVALID_REQUEST.FENCE", "holds a diff");
    refuse(&inside("{\"patches\": [{\"path\": \"x\", \"replacements\": []}]}\n"), "INVALID_REQUEST.FENCE", "holds a");
    let call = "{\"name\": \"workspace_create_file\", \"arguments\": {\"path\": \"c\", \"content\": \"\"}}";
    check(&inside(&format!("<tool_call>{call}</tool_call>\n")), &["c", "a"]);
    let sample = "```json\n{\"path\": \"x\", \"content\": \"\"}\n```\n";
    let whole = "### src/m.py\n```python\nx\n```\n";
    let envelope = "*** Begin Patch\n*** Delete File: f.md\n*** End Patch\n";
    for edit in [format!("f.md\n```\n{}```\n", blocks("a")), envelope.to_owned()] {
        check(&format!("````md\n{edit}\n{whole}````\n"), &["f.md", "src/m.py"]);
        refuse(&format!("````md\n{edit}\n{sample}````\n"), "INVALID_REQUEST.FENCE", "envelope");
    }
    // A file of prose that is announced is no layout.
    check(
        &format!("f.md\n{}\nUpdate README.md to:\n\n````md\n{bundle}````\n", blocks("a")),
        &["f.md", "Update? README.md to?:"],
    );
    // what is inside has its own lines, and is named as outside
    refuse(
        &format!("````text\n{}````\n", layout.replace(A, "{\"files\": [{\"content\": 3}]}")),
        "INVALID_REQUEST.TYPE",
        "line 4",
    );
    check(&format!("````text\n{layout}\nsrc/m.py\n```\nx\n```\n````\n"), &["a", "d", "src/m.py"]);
    // A file of prose that shows blocks is no layout.
    check(&format!("f.md\n{}\nREADME.md\n````md\n{bundle}````\n", blocks("a")), &["f.md", "README.md"]);
    check(&format!("f.md\n{}\n````md\n```bash\nls\n```\n````\n", blocks("a")), &["f.md", "BLOCK_IGNORED"]);
    // SEARCH/REPLACE blocks and patches with markers of their own are edits in any fence.
    check(&format!("````text\nf.md\n```\n{}```\n````\n", blocks("a")), &["f.md"]);
}

/// The fences of the layout may be as long as the one around them. As Markdown has it the first closing fence
/// ends the outer one and nothing closes the last one, so that an answer has at most one of both readings.
#[test]
fn an_outer_fence_may_be_as_long_as_those_inside() {
    let bundle = format!("### Bundle\n```json\n{A}\n```\n");
    let layout = format!("{bundle}\n### Patch\n```patch\n{}```\n", diff("d"));
    for tag in ["text", "markdown", "md"] {
        for prose in ["", "So:\n\n"] {
            check(&format!("{prose}```{tag}\n{layout}```\n"), &["a", "d"]);
            check(&format!("{prose}```{tag}\n{layout}```"), &["a", "d"]);
            check(&format!("{prose}```{tag}\n{layout}```\n\nThat is all.\n"), &["a", "d"]);
        }
    }
    check(&format!("```\n{layout}```\n"), &["a", "d"]);
    check(&format!("~~~md\n{}~~~\n", layout.replace("```", "~~~")), &["a", "d"]);
    check(&format!("```text\n{layout}```\n").replace('\n', "\r\n"), &["a", "d"]);
    check(&format!("```md\nf.md\n```text\n{}```\n```\n", blocks("a")), &["f.md"]);
    let doubt = |answer: &str| refuse(answer, "INVALID_REQUEST.FENCE", "drop the outer fence");
    // with prose above, a bare fence may be a closing one that has lost its opening one
    doubt(&format!("So:\n\n```\n{layout}```\n"));
    // another tag, other edits, or fences of other lengths
    doubt(&format!("```python\n{layout}```\n"));
    doubt(&format!("```text\n{layout}```\n\n```patch\n{}```\n", diff("e")));
    doubt(&format!("```patch\n{}```\n\n```text\n{layout}```\n", diff("e")));
    doubt(&format!("```text\n{}```\n", layout.replacen("```json", "````json", 1)));
    doubt(&format!("```text\n```md\n{layout}```\n```\n"));
    doubt(&format!("```text\n{layout}```\nf.md\n{}", blocks("a")));
    doubt(&format!("README.md\n```md\n{layout}```\n"));
    doubt(&format!("Update README.md to:\n```md\n{layout}```\n"));
    doubt("```md\n```sh\nls\n```\n```\n");
    // wherever it is cut, nothing of it is applied
    let whole = format!("```text\n{layout}```\n");
    for end in 0..whole.len() - 1 {
        let cut = &whole[..end];
        assert!(read(cut).is_err() || cut.trim_end() == whole.trim_end(), "{cut}");
    }
}

/// Other text in the fence of a SEARCH/REPLACE block or a patch with markers of its own is about it, or refuses the answer.
#[test]
fn no_lines_beside_an_edit_in_its_fence_are_passed_over() {
    let envelope = "*** Begin Patch\n*** Delete File: f.md\n*** End Patch\n";
    let edit = blocks("a");
    for about in
        ["f.md\n", "# f.md\n", "// Sum up.\nf.md\n", "Change this:\nf.md\n", "<replace_in_file>\n<path>f.md</path>\n"]
    {
        check(&format!("So:\n\n```\n{about}{edit}```\n"), &["f.md"]);
    }
    check(&format!("So:\n\n```bash\napply_patch <<'EOF'\n{envelope}EOF\n```\n"), &["f.md"]);
    for code in ["def added():\n    return 5 + 6\n", "x = 1\n", "import a from \"./b/c.js\";\n", "f(x);\n"] {
        for answer in [
            format!("f.md\n```python\n{edit}\n{code}```\n"),
            format!("```python\n# a.py\n{code}\nf.md\n{edit}```\n"),
            format!("So:\n\n```python\n{envelope}\n{code}```\n"),
        ] {
            refuse(&answer, "INVALID_REQUEST.FENCE", "belong to none of its edits");
        }
    }
}

/// An edit that is indented so far that Markdown takes it for a sample is not passed over.
#[test]
fn no_indented_edit_is_passed_over() {
    let indented = |text: &str| text.lines().map(|line| format!("        {line}\n")).collect::<String>();
    let edits = [
        format!("```json\n{A}\n```\n"),
        format!("```diff\n{}```\n", diff("d")),
        diff("d"),
        format!("f.md\n{}", blocks("a")),
        "*** Begin Patch\n*** Delete File: f.md\n*** End Patch\n".to_owned(),
    ];
    for edit in edits {
        for beside in [String::new(), format!("```json\n{}\n```\n", A.replace("\"a\"", "\"z\""))] {
            let answer = format!("- Do\n\n{}\nand\n\n{beside}", indented(&edit));
            assert!(read(&answer).is_err(), "{answer}");
        }
    }
    // tags of other tools
    for (open, close) in [("<file path=\"a.py\">", "</file>"), ("<antArtifact title=\"a.py\">", "</antArtifact>")] {
        let answer = format!("{open}\nx = 1\n{close}\n\n```json\n{A}\n```\n");
        refuse(&answer, "INVALID_REQUEST.FENCE", "calls a tool");
    }
    let sample = "    let x = 1;\n\n    let y = 2;\n";
    check(&format!("So:\n\n{sample}\n```json\n{A}\n```\n"), &["a"]);
    check(&format!("src/m.rs:\n\n{sample}\n```json\n{A}\n```\n"), &["a", "src/m.rs"]);
    // a line of a diff without a fence is no sample
    let deep = diff("d").replace("1,2", "1,5").replace(" c\n", " \n     --- x\n     +++ x\n     @@ -1 +1 @@\n");
    check(&format!("```bash\nls\n```\n\n{deep}"), &["d", "BLOCK_IGNORED"]);
}

/// Unclosed fences refuse the answer, except an empty one that ends with its list item.
#[test]
fn unbalanced_fences_refuse_the_answer() {
    let json = format!("```json\n{A}\n```\n");
    for answer in [
        format!("{json}```\n"),
        format!("{json}~~~text\n"),
        format!("f.md\n```\n{}", blocks("a")),
        format!("{json}- ```\n  x\n\nSo.\n"),
        format!("{json}- ```\n"),
    ] {
        refuse(&answer, "INVALID_REQUEST.FENCE", "no closing fence");
    }
    check(&format!("- ```\n- Then:\n\n{json}"), &["a", "BLOCK_IGNORED"]);
    check(&format!("> ```\n\nThen:\n\n{json}"), &["a", "BLOCK_IGNORED"]);
}

/// The file in a fence's words.
fn named(info: &str) -> &str {
    info.rsplit([':', ' ', '=']).next().unwrap_or_default().trim_matches('"')
}

/// A block that is sent twice is not applied twice.
#[test]
fn a_block_that_occurs_twice_refuses_the_answer() {
    let new = "n.md\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n";
    for doubled in [format!("So:\n```json\n{A}\n```\n").repeat(2), format!("```patch\n{}```\n", diff("d")).repeat(2)] {
        refuse(&doubled, "INVALID_REQUEST.DUPLICATE_PATH", "each change once");
    }
    refuse(&format!("So:\n{}", new.repeat(2)), "PATCH_MALFORMED.MARKER", "each change once");
    check(&format!("So:\n{new}\nand\n{}", new.replace("\nx\n", "\ny\n")), &["n.md"]);
}
