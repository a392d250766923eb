//! Settings for the access log and for records of requests.

use crate::worker::world::World;

/// Applies the settings of the active table.
pub fn log_as_configured(world: &mut World) {
    world.log.set_format(world.table.access_format(), world.table.given_format());
    world.recorder.set(world.table.recent_requests(), world.log.format());
    note_rules(world);
}

/// Starts or stops recording all requests for a client that follows them.
pub fn follow(world: &mut World, is_followed: bool) {
    world.recorder.follow(is_followed);
    note_rules(world);
}

fn note_rules(world: &mut World) {
    world.tools.notes_rules = world.log.notes_rules() || world.recorder.logged.is_recorded();
}
