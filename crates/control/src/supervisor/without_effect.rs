//! Changes at run time that a reload of the files leaves without effect: of the overlay, and states of members.

use std::collections::HashMap;

use weir_core::admin_state::AdminState;
use weir_exchange::shared::live::LiveTable;
use weir_sources::overlay::{Difference, Effect, Overlay};
use weir_sources::{Files, Sources};

/// What the new files leave without effect that had one before, as sentences.
pub(super) fn without_effect(
    overlay: &Overlay,
    (files_before, files): (&Files, &Files),
    (before, now): (&LiveTable, &LiveTable),
) -> Vec<String> {
    let mut told = Vec::new();
    if !overlay.is_empty() {
        let was: Vec<Difference> = Sources::new(files_before, overlay).differences();
        let is = Sources::new(files, overlay).differences();
        told.extend(was.iter().zip(&is).filter_map(|(was, is)| lost(was, is)));
    }
    told.extend(states(before, now));
    told
}

/// The same change before and after, if it has lost its effect.
fn lost(was: &Difference, is: &Difference) -> Option<String> {
    let is_idle = |it: &Difference| matches!(it.effect, Effect::Stale | Effect::Redundant);
    if is_idle(was) && was.effect == is.effect || !is_idle(is) {
        return None;
    }
    let why = match (&is.reason, &is.place) {
        (Some(reason), _) => reason.clone(),
        (None, Some(place)) => format!("the files have the same value now, at {place}"),
        (None, None) => "the files do not have it any more either".to_owned(),
    };
    Some(format!("the change of {} has no effect any more: {why}", is.path.as_str()))
}

/// States of members, set at run time, that are gone with their members or are those of the files now.
fn states(before: &LiveTable, now: &LiveTable) -> Vec<String> {
    let members = |table: &LiveTable| {
        let pools = table.snapshot.pools.iter().zip(&table.pools);
        let members = pools.flat_map(|(pool, live)| {
            let members = pool.members.iter().zip(&live.members);
            members.map(|(configured, live)| {
                let name = format!("{}/{}", pool.name, configured.label);
                (name, (configured.state, live.state_override()))
            })
        });
        members.collect::<Vec<(String, (AdminState, Option<AdminState>))>>()
    };
    let set: Vec<(String, AdminState, AdminState)> = members(before)
        .into_iter()
        .filter_map(|(name, (own, set))| Some((name, own, set?)))
        .collect();
    if set.is_empty() {
        return Vec::new();
    }
    let now: HashMap<_, _> = members(now).into_iter().collect();
    let told = set.into_iter().filter_map(|(name, own, set)| {
        let state = set.as_str();
        match now.get(&name) {
            None => Some(format!(
                "the state `{state}` of member {name}, set at run time, is gone with the member"
            )),
            Some((in_file, Some(_))) if *in_file == set && own != set => Some(format!(
                "the state `{state}` of member {name}, set at run time, is that of the files now"
            )),
            Some(_) => None,
        }
    });
    told.collect()
}
