//! The mode of a session beside its batch: a reader that does not know the field refuses the batch instead of applying it.

use aptix_model::batch::Batch;
use aptix_model::reason::Detail;
use aptix_model::record::BatchRecord;
use aptix_model::wire::v1;

use crate::wire::record;

/// REQ-PATCH-009.1: nothing is stated of a batch that may be applied, and a reader of an earlier version refuses the others.
#[test]
fn a_batch_of_a_restricted_session_is_refused_by_readers_that_do_not_know_modes() {
    let free = v1::Batch::from(record());
    assert_eq!((free.session_mode(), free.edit.unwrap().required_features), (v1::SessionMode::Unspecified, Vec::new()));
    let closed = BatchRecord { is_restricted: true, ..record() };
    let message = v1::Batch::from(closed.clone());
    assert_eq!(message.session_mode(), v1::SessionMode::Restricted);
    let failures = Batch::try_from(message.edit.clone().unwrap()).unwrap_err();
    let found: Vec<_> = failures.iter().map(|failure| (failure.detail, failure.field.as_deref())).collect();
    assert_eq!(found, [(Some(Detail::UnknownFeature), Some("requiredFeatures[0]"))]);
    assert_eq!(BatchRecord::try_from(message.clone()), Ok(closed));

    let open = v1::Batch { session_mode: v1::SessionMode::Unrestricted.into(), ..message.clone() };
    assert_eq!(BatchRecord::try_from(open), Ok(record()));
    for (session_mode, detail) in [(0, Detail::UnknownFeature), (7, Detail::UnknownEnum)] {
        let failures = BatchRecord::try_from(v1::Batch { session_mode, ..message.clone() }).unwrap_err();
        assert_eq!(failures[0].detail, Some(detail), "{failures:?}");
    }
}
