<?php
// PHP: its variables for requests, and the path as front controllers read it. The answer's field X-Read holds them.
function text($value) { return is_array($value) ? implode(',', array_map('text', $value)) : $value; }
header('X-Read: ' . json_encode([
    'path' => parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH),
    'query' => text($_GET['api_key'] ?? null),
    'cookie' => text($_COOKIE['session_id'] ?? null),
    'header' => $_SERVER['HTTP_X_API_KEY'] ?? null,
    'method' => $_SERVER['REQUEST_METHOD'],
], JSON_INVALID_UTF8_SUBSTITUTE));
