//! The time zone of `time` in expressions, from the tz database of this host.

use std::io::ErrorKind;
use std::path::Path;

use weir_core::time_zone::TimeZone;

use crate::decode::Context;
use crate::file::{self, ReadError};
use crate::quote::clip;
use crate::raw;
use crate::shapes::ZoneChoice;

/// The folder of the tz database.
const FOLDER: &str = "/usr/share/zoneinfo";

/// Maximum size of a zone file; real ones have less than 4 KiB.
const ZONE_BYTES_MAX: u64 = 64 << 10;

/// The configured time zone. Errors are reported at the key.
pub(super) fn read(file: &raw::File, context: &mut Context) -> Option<TimeZone> {
    let choice = &file.time_zone;
    let name = match &choice.value {
        ZoneChoice::Offset(offset) => return Some(TimeZone::fixed(offset.seconds())),
        ZoneChoice::Name(name) => name,
    };
    let folder = Path::new(FOLDER);
    let read = file::read(&folder.join(name), ZONE_BYTES_MAX);
    let name = clip(name);
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(ReadError::Open(error)) if error.kind() == ErrorKind::NotFound && folder.is_dir() => {
            let message = format!("there is no time zone `{name}` in {FOLDER}");
            context.error_help(choice.span, message, "write a name such as Europe/Berlin");
            return None;
        }
        Err(ReadError::Open(error)) => {
            let reason = crate::file::without_number(&error);
            let message = format!("the time zone `{name}` cannot be read from {FOLDER}: {reason}");
            let help =
                "install the package tzdata, or write an offset from UTC, such as \"+01:00\"";
            context.error_help(choice.span, message, help);
            return None;
        }
        Err(_) => {
            let message = format!("the time zone `{name}` in {FOLDER} cannot be read as a file");
            context.error_help(choice.span, message, "write a name such as Europe/Berlin");
            return None;
        }
    };
    let zone = TimeZone::parse(&bytes);
    if let Err(error) = &zone {
        let message = format!("the time zone `{name}` in {FOLDER} cannot be used: {error}");
        context.error_help(choice.span, message, "install the package tzdata anew");
    }
    zone.ok()
}
