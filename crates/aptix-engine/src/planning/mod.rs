//! What every dialect plans with: what was found of a file, the settings, what the files of a batch share, and how the
//! outcome becomes a plan.

pub mod clipboards;
pub mod draft;
pub mod observed;
pub mod presence;
pub mod settings;
pub(crate) mod work;
