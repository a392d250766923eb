//! Settings of logging and recording requests.

use crate::worker::world::World;

/// Logs and records new requests according to the table.
pub fn log_as_configured(world: &mut World) {
    world.log.set_format(world.table.access_format(), world.table.given_format());
    world.recorder.set(world.table.recent_requests(), world.log.format());
    note_rules(world);
}

/// Records all requests while a client follows them.
pub fn follow(world: &mut World, is_followed: bool) {
    world.recorder.follow(is_followed);
    note_rules(world);
}

fn note_rules(world: &mut World) {
    world.tools.notes_rules = world.log.notes_rules() || world.recorder.logged.is_recorded();
}
