//! Batches that are applied file by file, over a real server and a real agent: what becomes of each file, who learns of it, and
//! what an undo takes back.

use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_model::wire::v1::file_patch::{Action, Target};
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::person::{Terminal, WHOLE};
use crate::processes::{Machine, Server, connected, eventually, json, wait_until_served};

/// Calls the server of a test.
pub(crate) struct Caller {
    runtime: tokio::runtime::Runtime,
    batches: BatchServiceClient<Channel>,
}

impl Caller {
    pub(crate) fn of(server: &Server) -> Self {
        let (runtime, channel) = connected(server);
        Self { runtime, batches: BatchServiceClient::new(channel) }
    }

    fn submit(&mut self, request: v1::SubmitBatchRequest) -> Result<v1::SubmitBatchResponse, Status> {
        self.runtime.block_on(self.batches.submit_batch(request)).map(tonic::Response::into_inner)
    }

    /// The states of a batch up to its end, and the batch then.
    fn watched(&mut self, id: &str) -> (Vec<v1::BatchState>, v1::Batch) {
        let request = v1::WatchBatchRequest {
            workspace_id: "demo".to_owned(),
            batch_id: id.to_owned(),
            view: v1::BatchView::Full.into(),
            ..v1::WatchBatchRequest::default()
        };
        self.runtime.block_on(async {
            let mut events = self.batches.watch_batch(request).await.unwrap().into_inner();
            let (mut states, mut last) = (Vec::new(), v1::Batch::default());
            while let Some(event) = events.message().await.unwrap() {
                if !event.heartbeat {
                    last = event.batch.unwrap();
                    states.push(last.state());
                }
            }
            (states, last)
        })
    }

    /// What became of a batch: its state, the status of each file, and `path: reason` of each failure.
    #[track_caller]
    pub(crate) fn outcome(
        &mut self,
        request: &str,
        files: Vec<v1::FilePatch>,
    ) -> (v1::Batch, v1::BatchState, Vec<String>) {
        let id = self.submit(per_file(request, files)).unwrap().batch.unwrap().batch_id;
        let (_, ended) = self.watched(&id);
        let (state, report) = (ended.state(), ended.report.clone().unwrap());
        let failures = report.failures.iter().map(|failure| format!("{} {}", failure.path, failure.reason));
        (ended, state, statuses(&report).into_iter().chain(failures).collect())
    }
}

fn statuses(report: &v1::Report) -> Vec<String> {
    let word = |file: &v1::FileReport| file.status().as_str_name().trim_start_matches("FILE_STATUS_").to_lowercase();
    report.files.iter().map(|file| format!("{} {}", file.path, word(file))).collect()
}

fn patch(path: &str, action: Action) -> v1::FilePatch {
    v1::FilePatch { target: Some(Target::Path(path.to_owned())), action: Some(action), ..v1::FilePatch::default() }
}

/// Replaces one text by another.
pub(crate) fn replace(path: &str, old: &str, new: &str) -> v1::FilePatch {
    let step = v1::Replacement { find: old.to_owned(), replace: new.to_owned(), ..v1::Replacement::default() };
    let steps = vec![v1::Replacement { scope: v1::Scope::First.into(), ..step }];
    patch(path, Action::Replacements(v1::Replacements { steps }))
}

pub(crate) fn create(path: &str) -> v1::FilePatch {
    let content = Some(v1::create_file::Content::Text("new\n".to_owned()));
    patch(path, Action::CreateFile(v1::CreateFile { content, ..v1::CreateFile::default() }))
}

fn per_file(request: &str, files: Vec<v1::FilePatch>) -> v1::SubmitBatchRequest {
    let (atomicity, required_features) = (v1::Atomicity::PerFile.into(), vec!["per_file".to_owned()]);
    let edit = v1::Edit { files, atomicity, required_features, ..v1::Edit::default() };
    v1::SubmitBatchRequest {
        workspace_id: "demo".to_owned(),
        request_id: request.to_owned(),
        content: Some(v1::submit_batch_request::Content::Edit(edit)),
        view: v1::BatchView::Full.into(),
        ..v1::SubmitBatchRequest::default()
    }
}

fn served(policy: &str) -> (Machine, Server, Caller) {
    let machine = Machine::new().with_policy(policy);
    for name in ["a.txt", "b.txt", "c.txt", "closed/d.txt"] {
        machine.put(name, "one\ntwo\n");
    }
    let server = machine.server();
    let caller = Caller::of(&server);
    (machine, server, caller)
}

#[test]
fn each_file_is_applied_or_refused_by_itself() {
    let (machine, server, mut caller) = served("deny = [\"closed/\"]\n");
    let _agent = machine.agent(&server);
    wait_until_served(&server);
    let files = vec![
        replace("a.txt", "one", "1"),
        replace("b.txt", "absent", "x"),
        replace("closed/d.txt", "one", "1"),
        create("new.txt"),
    ];
    let preview = caller.submit(v1::SubmitBatchRequest { validate_only: true, ..per_file("p", files.clone()) });
    let preview = preview.unwrap().preview.unwrap();
    let told = ["a.txt modified", "b.txt failed", "closed/d.txt failed", "new.txt created"];
    assert_eq!((preview.outcome(), statuses(&preview)), (v1::Outcome::Partial, told.map(str::to_owned).to_vec()));
    let before = machine.files();
    let (batch, state, outcome) = caller.outcome("r1", files.clone());
    let reasons = ["b.txt TEXT_NOT_FOUND", "closed/d.txt POLICY_DENIED"];
    assert_eq!(
        (state, outcome),
        (v1::BatchState::Partial, told.iter().chain(&reasons).map(|s| (*s).to_owned()).collect())
    );
    let report = batch.report.clone().unwrap();
    assert!(
        report.diff.contains("+1\n") && report.diff.contains("+new\n") && !report.diff.contains("b.txt"),
        "{report:?}"
    );
    assert!(report.files[1].sha256_before.is_none() && report.failures.iter().all(|found| found.next_action.is_none()));
    let text = |name: &str| machine.files().into_iter().find(|(path, _)| path == name).map(|(_, text)| text);
    assert_eq!(
        ["a.txt", "b.txt", "new.txt"].map(text),
        ["1\ntwo\n", "one\ntwo\n", "new\n"].map(|text| Some(text.to_owned()))
    );
    let repeated = caller.submit(per_file("r1", files)).unwrap().batch.unwrap();
    assert_eq!((repeated.batch_id, repeated.report), (batch.batch_id.clone(), batch.report.clone()), "the same batch");
    assert_eq!(caller.watched(&batch.batch_id).0, [v1::BatchState::Partial]);

    let (shown, code) = machine.ask(&server, "show", &[&batch.batch_id]);
    assert_eq!((code, &shown["state"], &shown["success"]), (Some(0), &"PARTIAL".into(), &false.into()), "{shown}");
    assert_eq!((&shown["files"][1]["status"], &shown["errors"][0]["fileIndex"]), (&"failed".into(), &1.into()));
    let here = |arguments: &[&str]| {
        json(&machine.aptix(&[arguments, &["--json", "--root", "project"]].concat()).output().unwrap()).0
    };
    let kept = here(&["show", &batch.batch_id]);
    assert_eq!(
        (&kept["state"], &kept["files"][3]["filePatchId"]),
        (&"PARTIAL".into(), &shown["files"][3]["filePatchId"])
    );
    assert_eq!(here(&["log"])["batches"][0]["state"], "PARTIAL");
    assert_eq!(here(&["undo", &batch.batch_id])["success"], true);
    assert_eq!(machine.files(), before);
    eventually("the undo is reported", || {
        let request = v1::GetBatchRequest {
            workspace_id: "demo".to_owned(),
            batch: Some(v1::get_batch_request::Batch::BatchId(batch.batch_id.clone())),
            view: v1::BatchView::Basic.into(),
        };
        let found = caller.runtime.block_on(caller.batches.get_batch(request)).unwrap().into_inner().batch.unwrap();
        !found.reverted_by.is_empty() && found.state() == v1::BatchState::Partial
    });
}

#[test]
fn a_batch_without_refused_files_is_applied_and_one_without_others_failed() {
    let (machine, server, mut caller) = served("");
    let _agent = machine.agent(&server);
    let (_, state, outcome) = caller.outcome("r1", vec![replace("a.txt", "one", "1"), create("new.txt")]);
    assert_eq!(
        (state, outcome),
        (v1::BatchState::Applied, vec!["a.txt modified".to_owned(), "new.txt created".to_owned()])
    );
    let (_, state, outcome) = caller.outcome("r2", vec![replace("a.txt", "absent", "x"), create("b.txt")]);
    let reasons = ["a.txt TEXT_NOT_FOUND", "b.txt FILE_EXISTS"].map(str::to_owned).to_vec();
    assert_eq!((state, outcome), (v1::BatchState::Failed, reasons));
}

#[test]
fn a_person_who_refuses_the_batch_refuses_all_of_it() {
    let (machine, server, mut caller) = served("");
    let _agent = machine.agent_that(&server, "never");
    let before = machine.files();
    let (_, state, outcome) = caller.outcome("r1", vec![replace("a.txt", "one", "1"), replace("b.txt", "absent", "x")]);
    assert_eq!((state, outcome), (v1::BatchState::Rejected, vec![" REJECTED".to_owned()]));
    assert_eq!(machine.files(), before);
}

/// A person who refuses one file is asked about the others. Who has agreed is not asked again because a file changes afterwards.
#[test]
fn a_person_is_asked_about_what_is_left() {
    let (machine, server, mut caller) = served("");
    let mut terminal = Terminal::open(&machine, &server);
    let edits = || vec![replace("a.txt", "one", "1"), replace("b.txt", "one", "1"), replace("c.txt", "absent", "x")];
    std::thread::scope(|scope| {
        let ended = scope.spawn(|| caller.outcome("r1", edits()));
        assert!(terminal.until(WHOLE).contains("2 files, +2 -2, 1 of the batch refused before and left out"));
        terminal.answer("f");
        terminal.until("a.txt right? [y,n,a,d,q,b,ever,?] ");
        terminal.answer("y");
        terminal.until("b.txt right? [y,n,a,d,q,b,ever,?] ");
        terminal.refuse("not this one");
        assert!(terminal.until(WHOLE).contains("1 file, +1 -1, 2 of the batch refused before and left out"));
        terminal.answer("y");
        let (_, state, outcome) = ended.join().unwrap();
        let told = ["a.txt modified", "b.txt failed", "c.txt failed", "b.txt REJECTED", "c.txt TEXT_NOT_FOUND"];
        assert_eq!((state, outcome), (v1::BatchState::Partial, told.map(str::to_owned).to_vec()));
    });
    std::thread::scope(|scope| {
        let ended = scope.spawn(|| caller.outcome("r2", vec![replace("b.txt", "one", "2"), create("new.txt")]));
        terminal.until(WHOLE);
        machine.put("b.txt", "theirs\n");
        terminal.answer("y");
        let (_, state, outcome) = ended.join().unwrap();
        let told = ["b.txt failed", "new.txt created", "b.txt FILE_CHANGED"].map(str::to_owned).to_vec();
        assert_eq!((state, outcome), (v1::BatchState::Partial, told));
    });
}

/// Of a document that is sent to be applied file by file, its author is told which file a person refused, and why.
#[test]
fn the_author_of_a_document_reads_why_one_file_was_refused() {
    let (machine, server, _) = served("");
    let mut terminal = Terminal::open(&machine, &server);
    let edit = |path: &str| format!("{path}\n<<<<<<< SEARCH\none\n=======\n1\n>>>>>>> REPLACE\n");
    machine.put("edit.txt", &format!("{}\n{}", edit("a.txt"), edit("b.txt")));
    std::thread::scope(|scope| {
        let ended = scope.spawn(|| machine.call(&server, "submit", &["--per-file", "--wait", "project/edit.txt"]));
        terminal.until(WHOLE);
        terminal.answer("f");
        terminal.until("a.txt right? [y,n,a,d,q,b,ever,?] ");
        terminal.answer("y");
        terminal.until("b.txt right? [y,n,a,d,q,b,ever,?] ");
        terminal.refuse("the tests want it");
        terminal.until(WHOLE);
        terminal.answer("y");
        let ended = ended.join().unwrap();
        let shown = [ended.stdout, ended.stderr].concat();
        let shown = String::from_utf8(shown).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{shown}");
        for part in ["PARTIAL", "modified a.txt", "REJECTED: b.txt", "the tests want it"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    });
}

/// What a refusal says, and what makes an edit wrong.
type Wrong<'a> = (&'a str, &'a dyn Fn(&mut v1::Edit));

/// An older reader ignores `atomicity`, so the edit has to require the feature; an edit that is wrong in itself is refused whole.
#[test]
fn what_cannot_be_applied_file_by_file_is_refused_by_name() {
    let (_machine, _server, mut caller) = served("");
    let edited = |change: &dyn Fn(&mut v1::Edit)| {
        let mut request = per_file("r1", vec![replace("a.txt", "one", "1")]);
        let Some(v1::submit_batch_request::Content::Edit(edit)) = &mut request.content else { unreachable!() };
        change(edit);
        request
    };
    let cases: [Wrong; 4] = [
        ("requiredFeatures lacks", &|edit| edit.required_features.clear()),
        ("atomicity is not ATOMICITY_PER_FILE", &|edit| edit.atomicity = v1::Atomicity::AllOrNothing.into()),
        ("does not have", &|edit| edit.required_features.push("sorcery".to_owned())),
        ("same file", &|edit| edit.files.push(edit.files[0].clone())),
    ];
    for (message, change) in cases {
        let status = caller.submit(edited(change)).unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        assert!(status.message().contains(message), "{message}: {status:?}");
    }
    let Some(v1::submit_batch_request::Content::Edit(edit)) = edited(&|_| ()).content else { unreachable!() };
    let request = v1::PrepareBatchRequest {
        workspace_id: "demo".to_owned(),
        request_id: "r1".to_owned(),
        owner: "ann".to_owned(),
        content: Some(v1::prepare_batch_request::Content::Edit(edit)),
        ..v1::PrepareBatchRequest::default()
    };
    let status = caller.runtime.block_on(caller.batches.prepare_batch(request)).unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    assert!(status.message().contains("ATOMICITY_PER_FILE"), "{status:?}");
}
