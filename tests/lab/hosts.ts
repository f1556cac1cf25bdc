export const isolatedUrl = 'http://127.0.0.1:4571/';
export const plainUrl = 'http://127.0.0.1:4572/some/where/lab/';
