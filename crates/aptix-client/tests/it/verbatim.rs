//! Text that looks like an edit is refused with a way past it that the reader of the refusal has.

use aptix_client::apply::{Mode, apply, proposal::Decision};
use aptix_client::policy::Policy;
use aptix_client::policy::caller::Caller;
use aptix_model::batch::{AnchorEdit, AnchorPlace, Batch, FileEdit};
use aptix_model::documents;
use aptix_model::reason::Reason;

use crate::faults::{self, Fault};

const FENCED: &str = "```\nx = 1\n```\n";

fn hint(place: &std::path::Path, caller: Caller, batch: &Batch) -> String {
    let (workspace, _) = faults::open(place, Fault::None).unwrap();
    let policy = Policy::unstated(caller);
    let options = faults::options(&policy, Mode::Commit);
    let failure = apply(&workspace, batch, options, &mut |_| Decision::Apply).unwrap_err().failures.remove(0);
    assert_eq!(failure.reason, Reason::SuspectContent, "{failure}");
    failure.hint.unwrap()
}

#[test]
fn the_way_past_the_refusal_is_one_that_the_reader_has() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("ws")).unwrap();
    std::fs::write(place.path().join("ws/old.py"), "y = 2\n").unwrap();
    let document = serde_json::json!({ "path": "a.py", "content": FENCED }).to_string();
    let document = documents::parse(document.as_bytes(), None).unwrap().batch;
    let edit = AnchorEdit { place: AnchorPlace::Whole { content_format: None }, content: FENCED.to_owned() };
    let prepared = faults::batch_of([faults::patch("old.py", FileEdit::AnchorEdit(edit))]);
    let cases = [
        (Caller::Shell, &document, "run `aptix apply` with --verbatim"),
        (Caller::Model, &document, "write the whole file and declare contentFormat \"verbatim\""),
        (Caller::Server, &document, "write the whole file and declare contentFormat \"verbatim\""),
        (Caller::Model, &prepared, "set content_format to \"verbatim\""),
    ];
    for (caller, batch, way) in cases {
        let expected = format!("send the text without the fences; if the file must hold exactly this text, {way}");
        assert_eq!(hint(place.path(), caller, batch), expected, "{caller:?}");
    }
}
