//! The directories that a user opened for editing, and the only code that reads or writes in them.
//!
//! Five rooms, of which each names only those before it: [`fs`] calls the system, [`roots`] holds directories and files of
//! our own, [`read`] finds and reads files, [`commit`] writes all of a batch or nothing, [`keep`] remembers what was done.
//! On top of them: [`open`] holds roots and recovers, [`transaction`] commits, [`maintain`] does what can wait, `examine`
//! reports on what is kept, [`wall`] lets the kernel forbid the rest.

#[doc(hidden)] // public for the tests and harnesses that break commits off
pub mod commit;
#[cfg(feature = "cli")]
pub(crate) mod examine;
pub mod fs;
pub mod keep;
pub mod maintain;
pub mod open;
#[doc(hidden)] // public for the tests and harnesses that break commits off
pub mod read;
pub mod roots;
#[doc(hidden)] // public for the tests and harnesses that break commits off
pub mod transaction;
#[doc(hidden)] // public for the tests of processes behind the wall
pub mod wall;
