//! The test backend of CRS.

use base64::Engine as _;

use super::ftw::Stage;

/// The response of the backend.
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// The response to a stage. The JSON body of a request for `/reflect` describes the response; other responses are empty.
    pub fn to(stage: &Stage) -> Self {
        let nothing = Self { status: 200, headers: Vec::new(), body: Vec::new() };
        if !stage.request.target.starts_with(b"/reflect") {
            return nothing;
        }
        let Ok(said) = serde_json::from_slice::<serde_json::Value>(&stage.request.body) else {
            return nothing;
        };
        let encoded = said["encodedBody"]
            .as_str()
            .map(|text| base64::engine::general_purpose::STANDARD.decode(text).expect("base64"));
        let plain = || said["body"].as_str().unwrap_or_default().as_bytes().to_vec();
        let headers = said["headers"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()));
        Self {
            status: said["status"].as_u64().and_then(|it| u16::try_from(it).ok()).unwrap_or(200),
            headers: headers.collect(),
            body: encoded.unwrap_or_else(plain),
        }
    }
}
