//! Blocks of an answer that are named for a file and are no edits: they compare, as edits do, and reveal as little.

use aptix_model::batch::Batch;
use aptix_model::documents::{self, Dialect};
use aptix_model::quote::{Quote, QuoteName};
use prost::Message;

use super::oracle::{Person, applied};
use super::{Approve, Scene, TEXT, lay_out, of_batch};

/// A batch that makes a file, and has a block of this text that is named for another.
fn quoting(new: &str, path: &str, text: &str) -> Batch {
    let bundle = serde_json::json!({ "files": [{ "path": new, "operation": "create", "content": "mine\n" }] });
    let batch = documents::parse(bundle.to_string().as_bytes(), Some(Dialect::FileBundle)).unwrap().batch;
    let quote = Quote {
        first_line: 3,
        last_line: 5,
        names: vec![QuoteName { path: path.to_owned(), is_path: true }],
        is_announced: false,
        text: text.to_owned(),
    };
    Batch { quotes: vec![quote], ..batch }
}

/// What occurs in [`TEXT`], and what does not; of one length.
const TEXTS: [&str; 2] = ["zebra-second\n", "zebra-sekond\n"];

#[tokio::test]
async fn a_quotation_of_a_withheld_file_is_no_oracle() {
    for approve in [Approve::Auto, Approve::Ask] {
        let scene = Scene::set(approve);
        lay_out(&scene);
        scene.put_policy("limits = { refused_per_minute = 1000 }");
        let mut number = 0;
        for path in ["ignored.txt", "twin.txt", "terraform.tfvars"] {
            let mut answers = Vec::new();
            for text in TEXTS {
                number += 1;
                scene.server.send(of_batch(number, quoting("new.txt", path, text)));
                let report = scene.report_of(number).await;
                assert_eq!((report.failures[0].detail.as_str(), report.failures.len()), ("WITHHELD", 1), "{report:?}");
                assert_eq!(report.failures[0].path, path);
                answers.push(report.encode_to_vec());
            }
            assert_eq!(answers[0], answers[1], "{path}");
        }
        assert!(!scene.place("new.txt").exists());
        scene.assert_unheard(TEXT);
    }
    let scene = Scene::set(Approve::Never);
    lay_out(&scene);
    let [fits, misfits] = TEXTS.map(|text| quoting("new.txt", "ignored.txt", text));
    let mut answers = Vec::new();
    for batch in [&fits, &misfits] {
        for person in [Person::LetsNothingBeCompared, Person::RefusesWhatFits] {
            answers.push(applied(&scene, batch, person).unwrap_err());
        }
    }
    answers.push(applied(&scene, &misfits, Person::Agrees).unwrap_err());
    assert!(answers.iter().all(|refusal| *refusal == answers[0]), "{answers:#?}");
    let report = applied(&scene, &fits, Person::Agrees).unwrap();
    assert_eq!((report.files.len(), report.warnings.len()), (1, 1), "{report:?}");
    assert_eq!(scene.file("new.txt"), "mine\n");
}

/// A quotation of a file that may be read is a warning of the report; anything else named for one refuses the batch.
#[tokio::test]
async fn a_quotation_is_reported_and_writes_nothing() {
    let scene = Scene::set(Approve::Auto);
    scene.lay("src/open.rs", TEXT);
    scene.server.send(of_batch(1, quoting("one.txt", "src/open.rs", TEXTS[0])));
    let report = scene.report_of(1).await;
    let said: Vec<_> = report.warnings.iter().map(|warning| (warning.code.as_str(), warning.line)).collect();
    assert_eq!((said, report.files.len()), (vec![("BLOCK_IGNORED", Some(3))], 1), "{report:?}");
    assert!(report.warnings[0].message.contains("it quotes \"src/open.rs\""), "{report:?}");
    assert_eq!((scene.file("one.txt").as_str(), scene.file("src/open.rs").as_str()), ("mine\n", TEXT));
    scene.server.send(of_batch(2, quoting("two.txt", "src/open.rs", TEXTS[1])));
    let report = scene.report_of(2).await;
    assert_eq!((report.failures[0].reason.as_str(), report.failures[0].detail.as_str()), ("INVALID_REQUEST", "FENCE"));
    assert!(report.warnings.is_empty() && !scene.place("two.txt").exists(), "{report:?}");
}
