//! A history: what callers, an operator and failures do, one step after the other.

/// How many blobs there are, and paths of files.
pub(super) const BLOBS: usize = 3;
pub(super) const PATHS: usize = 3;

/// One step. What it names is counted modulo what there is; a step about nothing does nothing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// A whole blob is uploaded.
    Upload { blob: usize },
    /// The first part of a blob is uploaded; a claimed upload can be resumed.
    Begin { blob: usize, claimed: bool },
    /// The next part of an upload comes; behind the last one it becomes the blob.
    Continue { upload: usize },
    /// An upload that can be resumed is found again.
    Resume { blob: usize },
    /// An upload is given up.
    GiveUp { upload: usize },
    /// A caller asks whether a blob is there.
    Ask { blob: usize },
    /// A batch that names a blob is stored. Its author asked just now whether the blob is there, or long ago.
    Submit { blob: usize, prepared: bool, asked: bool },
    /// The request of a batch is repeated.
    Retry { batch: usize },
    /// A prepared batch is let be applied.
    Free { batch: usize },
    /// An agent applied a batch; a file has the bytes of a blob now.
    Report { batch: usize, blob: usize, path: usize, asked: bool },
    /// A batch ends, and no file changes.
    Cancel { batch: usize },
    /// A file is removed.
    Remove { batch: usize, path: usize },
    /// What ended loses its content, but for so many batches, and its events, but for so many.
    Retain { contents: u64, events: u64 },
    /// A sweep of everything, or of all that no caller asked about, begins. The next steps are taken beside it.
    Sweep { all: bool },
    /// The sweep under way ends.
    Swept,
    /// The store is opened again: after it was closed, or whatever it was doing.
    Reopen { closed: bool },
}

/// A history of so many steps.
pub(super) fn random(seed: u64, steps: usize) -> Vec<Step> {
    let mut random = Random(seed);
    (0..steps).map(|_| step(&mut random)).collect()
}

fn step(random: &mut Random) -> Step {
    let (blob, path) = (random.below(BLOBS), random.below(PATHS));
    let (any, coin) = (random.below(1000), random.below(2) == 0);
    match random.below(100) {
        0..14 => Step::Upload { blob },
        14..20 => Step::Begin { blob, claimed: coin },
        20..30 => Step::Continue { upload: any },
        30..33 => Step::Resume { blob },
        33..35 => Step::GiveUp { upload: any },
        35..39 => Step::Ask { blob },
        39..54 => Step::Submit { blob, prepared: any % 4 == 0, asked: coin },
        54..56 => Step::Retry { batch: any },
        56..59 => Step::Free { batch: any },
        59..67 => Step::Report { batch: any, blob, path, asked: coin },
        67..71 => Step::Cancel { batch: any },
        71..75 => Step::Remove { batch: any, path },
        75..80 => Step::Retain { contents: any as u64 % 3, events: any as u64 % 5 },
        80..92 => Step::Sweep { all: any % 4 != 0 },
        92..96 => Step::Swept,
        _ => Step::Reopen { closed: coin },
    }
}

/// Splitmix64: the same numbers of a seed everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }
}
