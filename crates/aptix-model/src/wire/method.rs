//! Every method of the protocol, as an enum.

include!("generated/method.rs");
