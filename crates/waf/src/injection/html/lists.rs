//! HTML names that introduce scripts, or may introduce them.

/// Elements that alone run a script, load a document, or change how a page is parsed. An `svg` with shapes alone does not.
#[rustfmt::skip]
const ELEMENTS: &[&str] = &[
    "applet", "frameset", "ilayer", "isindex", "noscript", "script", "style", "vmlframe",
    "xsl",
];

/// Elements with the same effects if they have an attribute. Without an attribute, they may be a type in a program:
/// `Vec<Object>`.
#[rustfmt::skip]
const ELEMENTS_WITH_ATTRIBUTES: &[&str] = &[
    "animate", "animatemotion", "animatetransform", "base", "bgsound", "embed", "foreignobject", "frame",
    "handler", "import", "layer", "link", "listener", "meta", "object", "portal", "set", "use", "xml",
];

/// Events with handlers in current or old browsers, without the `on` (HTML, UI Events, SVG, Internet Explorer).
#[rustfmt::skip]
const EVENTS: &[&str] = &[
    "abort", "activate", "afterprint", "afterscriptexecute", "afterupdate", "animationcancel", "animationend",
    "animationiteration", "animationstart", "auxclick", "beforeactivate", "beforecopy", "beforecut",
    "beforedeactivate", "beforeeditfocus", "beforeinput", "beforematch", "beforepaste", "beforeprint",
    "beforescriptexecute", "beforetoggle", "beforeunload", "beforeupdate", "begin", "blur", "bounce",
    "cancel", "canplay", "canplaythrough", "cellchange", "change", "click", "close", "command",
    "contentvisibilityautostatechange", "contextlost", "contextmenu", "contextrestored", "controlselect",
    "copy", "cuechange", "cut", "dataavailable", "datasetchanged", "datasetcomplete", "dblclick",
    "deactivate", "devicelight", "devicemotion", "deviceorientation", "drag", "dragdrop", "dragend",
    "dragenter", "dragexit", "dragleave", "dragover", "dragstart", "drop", "durationchange", "emptied", "end",
    "ended", "error", "errorupdate", "filterchange", "finish", "focus", "focusin", "focusout", "formchange",
    "formdata", "forminput", "fullscreenchange", "fullscreenerror", "gotpointercapture", "hashchange", "help",
    "input", "invalid", "keydown", "keypress", "keyup", "languagechange", "layoutcomplete", "load",
    "loadeddata", "loadedmetadata", "loadend", "loadstart", "location", "losecapture", "lostpointercapture",
    "mediacomplete", "mediaerror", "message", "messageerror", "mousedown", "mouseenter", "mouseleave",
    "mousemove", "mouseout", "mouseover", "mouseup", "mousewheel", "move", "moveend", "movestart",
    "mozfullscreenchange", "offline", "online", "orientationchange", "outofsync", "pagehide", "pagereveal",
    "pageshow", "pageswap", "paste", "pause", "play", "playing", "pointercancel", "pointerdown",
    "pointerenter", "pointerleave", "pointermove", "pointerout", "pointerover", "pointerrawupdate",
    "pointerup", "popstate", "popuphidden", "popuphiding", "popupshowing", "popupshown", "progress",
    "propertychange", "ratechange", "readystatechange", "rejectionhandled", "repeat", "reset", "resize",
    "resizeend", "resizestart", "resume", "reverse", "rowdelete", "rowenter", "rowexit", "rowinserted",
    "rowsdelete", "rowsenter", "rowsinserted", "scroll", "scrollend", "scrollsnapchange",
    "scrollsnapchanging", "search", "securitypolicyviolation", "seek", "seeked", "seeking", "select",
    "selectionchange", "selectstart", "show", "slotchange", "stalled", "start", "stop", "storage", "submit",
    "suspend", "syncrestored", "timeerror", "timeupdate", "toggle", "touchcancel", "touchend", "touchmove",
    "touchstart", "trackchange", "transitioncancel", "transitionend", "transitionrun", "transitionstart",
    "unhandledrejection", "unload", "urlflip", "volumechange", "waiting", "webkitanimationend",
    "webkitanimationiteration", "webkitanimationstart", "webkitfullscreenchange", "webkitmouseforcechanged",
    "webkitmouseforcedown", "webkitmouseforceup", "webkitmouseforcewillbegin",
    "webkitplaybacktargetavailabilitychanged", "webkittransitionend", "webkitwillrevealbottom", "wheel",
    "zoom",
];

/// Attributes whose value is a URL that a browser follows.
#[rustfmt::skip]
const ADDRESSES: &[&str] = &[
    "action", "background", "by", "cite", "classid", "code", "codebase", "data", "dataformatas", "datasrc",
    "dynsrc", "formaction", "from", "href", "icon", "longdesc", "lowsrc", "manifest", "ping", "poster",
    "profile", "src", "srcset", "to", "usemap", "values", "xlink:href",
];

/// Attributes whose value is a document that a browser loads.
#[rustfmt::skip]
const DOCUMENTS: &[&str] = &[
    "srcdoc", "folder", "dataformatas", "datasrc",
];

/// Length of the longest name in the lists.
const NAME_BYTES_MAX: usize = 40;

/// Whether the tag alone is an injection. A prefix with a colon is a namespace: `x:script`.
pub(super) fn is_element(name: &[u8]) -> bool {
    let local = memchr::memrchr(b':', name).and_then(|colon| name.get(colon + 1..)).unwrap_or(name);
    with_folded(local, |name| {
        ELEMENTS.binary_search(&name).is_ok()
            || (name.starts_with("svg") && name != "svg")
            || name.starts_with("xsl")
    })
}

/// Whether the tag is an injection unless it has the address of another site. A prefix with a colon is a namespace.
pub(super) fn is_frame(name: &[u8]) -> bool {
    let local = memchr::memrchr(b':', name).and_then(|colon| name.get(colon + 1..)).unwrap_or(name);
    with_folded(local, |name| name == "iframe")
}

/// Whether the tag is an injection if it has an attribute with a value.
pub(super) fn is_element_with_attributes(name: &[u8]) -> bool {
    with_folded(name, |name| ELEMENTS_WITH_ATTRIBUTES.binary_search(&name).is_ok())
}

/// Whether the attribute is the handler of an event that browsers support.
pub(super) fn is_known_handler(name: &[u8]) -> bool {
    handled_event(name)
        .is_some_and(|event| with_folded(event, |event| EVENTS.binary_search(&event).is_ok()))
}

/// Whether the attribute has the form of an event handler.
pub(super) fn is_handler(name: &[u8]) -> bool {
    handled_event(name).is_some_and(|event| {
        event.len() >= 3
            && event.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == 0 || *byte >= 0x80)
    })
}

fn handled_event(name: &[u8]) -> Option<&[u8]> {
    let (on, event) = name.split_at_checked(2)?;
    on.eq_ignore_ascii_case(b"on").then_some(event)
}

/// Whether the attribute's value is a URL.
pub(super) fn is_address(name: &[u8]) -> bool {
    with_folded(name, |name| ADDRESSES.binary_search(&name).is_ok())
}

/// Whether the attribute's value is a document.
pub(super) fn is_document(name: &[u8]) -> bool {
    DOCUMENTS.iter().any(|document| name.eq_ignore_ascii_case(document.as_bytes()))
}

/// Calls `ask` with the name in lower case and without NULs, which old browsers ignore.
fn with_folded(name: &[u8], ask: impl FnOnce(&str) -> bool) -> bool {
    let mut folded = [0_u8; NAME_BYTES_MAX];
    let mut length = 0;
    for byte in name.iter().filter(|byte| **byte != 0) {
        let Some(place) = folded.get_mut(length) else {
            return false;
        };
        *place = byte.to_ascii_lowercase();
        length += 1;
    }
    folded.get(..length).and_then(|folded| std::str::from_utf8(folded).ok()).is_some_and(ask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_fit() {
        for list in [ELEMENTS, ELEMENTS_WITH_ATTRIBUTES, EVENTS, ADDRESSES] {
            assert!(list.is_sorted_by(|one, next| one < next), "{list:?}");
            assert!(list.iter().all(|name| name.len() <= NAME_BYTES_MAX));
        }
    }
}
